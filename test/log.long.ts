await import('./log.test.ts');
