#!/bin/bash
set -e
echo welcome > /etc/motd
chown nobody /etc/motd
