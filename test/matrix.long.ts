await import('./matrix.test.ts');
