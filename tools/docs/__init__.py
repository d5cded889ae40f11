"""What the docs site is made of, besides its pages: a hook of MkDocs and the figures."""
