await import('./model.test.ts');
