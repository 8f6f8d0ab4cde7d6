# Each recipe calls a script that works without just, too, and sets up what it needs on first use.

set positional-arguments

[private]
default:
    @just --list

# Run everything on this machine: just server --port 0
[group('run')]
server *arguments:
    script/server "$@"

# Run a cluster of three nats-servers and two of each service on this machine
[group('run')]
cluster *arguments:
    script/cluster "$@"

# Run the tests: just test tests/unit -k settings
[group('check')]
test *arguments:
    script/test "$@"

# The fast lane: lint, types, the dashboard's code and unit tests
[group('check')]
check *arguments:
    script/check "$@"

# Write every file anew that is made by a program
[group('check')]
renew *arguments:
    script/renew "$@"

# Check lint, formatting, layers and dead code; just lint --fix corrects what can be corrected
[group('check')]
lint *arguments:
    script/lint "$@"

# Check the types of everything, tests included
[group('check')]
types *arguments:
    script/types "$@"

# Say which code the unit and integration tests run: the total and the ten least covered modules
[group('check')]
coverage *arguments:
    script/coverage "$@"

# Run the conformance cases that the project claims; --arrangement processes or cluster for more than one of each
[group('check')]
conformance *arguments:
    script/conformance "$@"

# Measure rates, latency and memory
[group('check')]
bench *arguments:
    script/setup dev
    .venv/bin/python -m bench "$@"

# Compare what a job costs with where this branch left main: just cost COMMIT enqueue
[group('check')]
cost *arguments:
    script/cost "$@"

# Put faults into a running system and say what they broke; just faults --help
[group('check')]
faults *arguments:
    script/faults "$@"

# Make the pictures of the documents anew, in a browser
[group('maintain')]
pictures:
    script/pictures

# Rehearse what operators may have to do one day: back up, destroy everything, restore, upgrade and go back
[group('check')]
drills *arguments:
    script/drills "$@"

# Everything that has to pass before a change goes in
[group('check')]
ci:
    .ci/run

# Make or renew .venv
[group('maintain')]
setup:
    script/setup dev

# Pin the newest versions of all dependencies
[group('maintain')]
requirements:
    script/requirements
