await import('./linear.test.ts');
