"""What routes are made of: declaration, who asks, paging, problems."""
