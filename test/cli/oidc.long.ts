await import('./oidc.test.ts');
