process.env['PLANT_STORE_TEST_STEPS'] ??= String(10_000_000);
await import('./decide.test.ts');
