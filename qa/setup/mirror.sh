# SPDX-License-Identifier: LGPL-2.1-or-later
# Which Debian mirror to use, and how to reach it. Sourced, never run.

# The archive this host itself uses, unless SWIM_MIRROR names another one.
debian_mirror() {
  if [ -n "${SWIM_MIRROR:-}" ]; then
    printf '%s\n' "${SWIM_MIRROR%/}"
    return
  fi
  local uri
  uri=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' \
    'Created-By: Packages' 2>/dev/null |
    sed -n 's/^Debian|Debian|//p' | head -n 1)
  [ -n "$uri" ] || die "apt on this host knows no Debian archive: run apt-get update," \
    "or set SWIM_MIRROR to a mirror's address (the folder that holds dists/ and pool/)"
  printf '%s\n' "${uri%/}"
}

# The host's own transport settings (proxies, validity checks) for the new root.
apt_transport_options() {
  apt-config dump | grep -E '^Acquire::(https?|Check-|Retries)' | grep -v ' "";$' || true
}
