grep -q solution /app/report.json
