await import('./workers.test.ts');
