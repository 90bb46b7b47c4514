/** The list of all problems, one that names faults, and one that is temporary. */
export const problemPaths = ['/problems', '/problems/invalid-request', '/problems/overloaded'];
