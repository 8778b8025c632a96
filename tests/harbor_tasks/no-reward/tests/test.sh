#!/bin/bash
echo 'I forgot'
