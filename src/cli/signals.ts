/** Signals that ask a process to stop: from a service manager, Ctrl-C, or a closed terminal. */
export const terminationSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** During `work`, a signal ends the process with status 130, and runs its handlers of `exit`, which clean up. */
export async function withExitOnSignal<T>(work: () => Promise<T>): Promise<T> {
  const exit = () => process.exit(130);
  for (const signal of terminationSignals) process.once(signal, exit);
  try {
    return await work();
  } finally {
    for (const signal of terminationSignals) process.off(signal, exit);
  }
}
