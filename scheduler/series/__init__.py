"""Series: a sweep on a timetable, and what its runs came to over the months.

``schedule_file`` reads the timetable, ``cron`` tells its due times, ``planner`` says what is to be
done about them, ``ledger`` keeps in the store who does it, ``runner`` does it, ``judge`` holds a
run against those before it, ``notify`` tells people. ``trend`` and ``page`` show all of them.
"""
