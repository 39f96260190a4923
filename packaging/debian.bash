# shellcheck shell=bash disable=SC2016  # variables of apt
# For scripts that work in a Debian 12 of their own. They need root.

# inside ROOT COMMAND...: in that Debian.
inside() {
  chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "${@:2}"
}

# apt_inside ROOT COMMAND...: what apt-get says is shown if it fails.
apt_inside() {
  inside "$1" apt-get -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${@:2}" > "$1.log" 2>&1 ||
    { tail "$1.log" >&2; return 1; }
}

# make_debian ROOT: an empty Debian 12 with the sources of this machine, updates included, in whichever form they are given.
make_debian() {
  local mirror
  mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | head -1)
  debootstrap --variant=minbase bookworm "$1" "$mirror" > "$1.log" || { tail "$1.log" >&2; return 1; }
  printf '#!/bin/sh\nexit 101\n' > "$1/usr/sbin/policy-rc.d"  # packages start no services
  chmod +x "$1/usr/sbin/policy-rc.d"
  apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Origin: Debian' 'Identifier: Packages' |
    grep ' bookworm' > "$1/etc/apt/sources.list"
  apt_inside "$1" update
  apt_inside "$1" upgrade
}
