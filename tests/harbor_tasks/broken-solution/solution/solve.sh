#!/bin/bash
set -e
echo 'about to fail' >&2
exit 3
