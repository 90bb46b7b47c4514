await import('./decide.test.ts');
