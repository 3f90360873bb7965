"""What several interfaces report: status, cost, roles, rules, findings."""
