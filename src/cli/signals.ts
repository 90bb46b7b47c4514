/** Signals that ask a process to stop: from a service manager, Ctrl-C, or a closed terminal. */
export const terminationSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
