-- Checks of the file by SQLite, in the form of ../sql/doctor.sql.

-- integrity: the structure of the file (PRAGMA quick_check)
SELECT
  CASE quick_check WHEN 'ok' THEN 'ok' ELSE 'fail' END,
  CASE quick_check WHEN 'ok' THEN 'SQLite finds no damage' ELSE quick_check END,
  'Stop the service, keep the file, and restore a backup: npx plant-store restore FILE'
FROM pragma_quick_check LIMIT 1;
