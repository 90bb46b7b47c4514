await import('./restore-user.test.ts');
