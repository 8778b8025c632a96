#!/bin/bash
touch here
