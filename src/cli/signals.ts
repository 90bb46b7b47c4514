/** Signals by which a person or a service manager asks a process to end. */
export const endingSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
