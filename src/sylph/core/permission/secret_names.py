"""Names of files that usually hold secrets."""

SECRET_FILE_NAMES = (
    ".env", ".env.*", ".envrc", ".git-credentials", ".htpasswd", ".netrc", ".pypirc", ".vault-token", "*.kdbx",
    "*.keystore", "*.p12", "*.pfx", "*.tfstate", "credentials.json", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa",
    "secrets.json", "secrets.toml", "secrets.y*ml", "service-account*.json",
)  # fmt: skip
