#!/bin/sh
# In a final stage, before anything is copied in: makes the base fit for one process of one user
# that never writes outside its run folder.
#
#   images/prepare.sh UID
set -eu

uid=$1

# An official Python image comes without bytecode of the standard library; with a read-only root
# it would be compiled at every start. The same for bytecode that a copy has made stale.
library=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
if ! python3 -v -c 'import textwrap' 2>&1 | grep -q '^# .*textwrap.*\.pyc matches'; then
  PYTHONHASHSEED=0 python3 -m compileall -q -f -j 1 --invalidation-mode unchecked-hash \
    -x '/(test|idlelib|lib2to3|ensurepip|pydoc_data|tkinter|turtledemo|(site|dist)-packages)/' \
    "$library"
fi

# nothing that installs
rm -rf "$library"/ensurepip "$library"/site-packages/pip "$library"/site-packages/pip-* \
  "$library"/site-packages/setuptools* "$library"/site-packages/wheel* \
  "$library"/site-packages/_distutils_hack "$library"/site-packages/pkg_resources \
  /usr/local/bin/pip* /usr/local/bin/wheel

# nothing that changes who one is
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

if [ "$uid" != 0 ]; then
  # some libraries ask for the name of the user
  echo "reveal:x:$uid:$uid:Reveal:/nonexistent:/usr/sbin/nologin" >>/etc/passwd
  echo "reveal:x:$uid:" >>/etc/group
fi
mkdir -p /run/reveal
chown "$uid:$uid" /run/reveal
