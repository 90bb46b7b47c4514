await import('./repeated-creates.test.ts');
