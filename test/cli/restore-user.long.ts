/** `user restore` after more random changes: 20 times in each round. */
import './restore-user.test.ts';
