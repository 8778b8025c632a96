#!/bin/bash
set -eu
[ "$ONLY_SOLUTION" = yes ]
[ -z "${WANTED:-}" ]
[ "$DEBIAN_FRONTEND" = noninteractive ]
printf %s "$PLACE" > /app/place.txt
