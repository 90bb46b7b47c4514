await import('./fuzz.test.ts');
