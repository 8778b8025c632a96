#!/bin/bash
exec python3 -c 'x = bytearray(600 * 1024 * 1024)'
