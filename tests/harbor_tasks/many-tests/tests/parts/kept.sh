grep -q kept /data/kept.txt && [ "$LOG" = /data/log.txt ]
