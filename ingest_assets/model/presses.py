"""When two signals are one."""

# `timeout` and some supervisors send a signal to a process and then to its whole group: that is one press.
SAME_PRESS_S = 0.05
