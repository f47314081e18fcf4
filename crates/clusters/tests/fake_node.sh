#!/bin/sh
# As much of a node as its runner can tell. What it does depends on the name in its configuration.
read -r config
case $config in
*'"name":"good"'*)
    echo '{"name":"good","transport":"127.0.0.1:1","http":"127.0.0.1:2"}'
    while read -r line; do echo "told to $line" >&2; done
    echo "input ended" >&2
    ;;
*'"name":"warns"'*)
    for line in '[warns] of a full disk' '[warns] of a full disk' 'and talks'; do echo "$line" >&2; done
    echo '{"name":"warns","transport":"127.0.0.1:1","http":"127.0.0.1:2"}'
    while read -r _; do :; done
    ;;
*'"name":"broken"'*)
    for n in $(seq 30); do echo "line $n" >&2; done
    exit 3
    ;;
*'"name":"taken"'*)
    echo "address in use" >&2
    exit 75
    ;;
*'"name":"moves"'*)
    # The address that it is given at its first start is taken.
    data=$(echo "$config" | sed 's/.*"data":"\([^"]*\)".*/\1/')
    if [ ! -d "$data" ]; then
        mkdir -p "$data"
        exit 75
    fi
    transport=$(echo "$config" | sed 's/.*"transport":"\([^"]*\)".*/\1/')
    echo "{\"name\":\"moves\",\"transport\":\"$transport\",\"http\":\"127.0.0.1:2\"}"
    while read -r _; do :; done
    ;;
*'"name":"chatty"'*)
    echo hello
    while read -r _; do :; done
    ;;
esac
