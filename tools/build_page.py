#!/usr/bin/env python3
"""Makes the web page of gpurota-web: checks its types, bundles it, and writes its files as C++.

    tools/build_page.py SOURCES FOLDER OUTPUT [--required]
    tools/build_page.py SOURCES FOLDER --bundle

SOURCES is src/web/page. FOLDER, below the build folder, gets a copy of the sources and what npm
installs; npm writes nowhere else. OUTPUT is the C++ file with the files of the page, compressed and
plain (src/web/page_assets.h).

--bundle leaves what npm has made in SOURCES/bundle, with the licences of what is in it: for a
source archive. A build of sources with a bundle needs no npm. If one of the sources has changed
since, the bundle is not used.

If npm is missing or cannot download its packages, OUTPUT has no files, and gpurota-web says so;
with --required or --bundle, this script fails instead. A mistake in the sources is always an error.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys

# Path in the page, name of the file in FOLDER, and content type.
FILES = [
    ("/", "index.html", "text/html; charset=utf-8"),
    ("/page.js", "out/page.js", "text/javascript; charset=utf-8"),
    ("/page.css", "out/page.css", "text/css; charset=utf-8"),
    ("/icon.svg", "icon.svg", "image/svg+xml"),
    ("/licences.txt", "out/licences.txt", "text/plain; charset=utf-8"),
]
# Files that npm makes, in the folder "out" and in SOURCES/bundle.
MADE = [os.path.basename(name) for _, name, _ in FILES if name.startswith("out/")]
# The packages in the bundle. Their licences require that the notices are distributed with them.
BUNDLED = ["preact", "uplot"]
# The most compressed bytes that a browser may have to load before it shows something.
MOST_BYTES = 150 * 1024
HEAD = """// Made by tools/build_page.py.
#include "web/page_assets.h"

namespace gpurota::web {
%s
const std::vector<PageAsset>& page_assets() {
  static const std::vector<PageAsset> assets = {%s};
  return assets;
}

}  // namespace gpurota::web
"""


def npm(folder, *arguments):
    """Runs npm. Returns whether it succeeded, and what it printed."""
    environment = dict(os.environ, npm_config_cache=os.path.join(folder, "npm-cache"),
                       npm_config_update_notifier="false", npm_config_fund="false",
                       npm_config_audit="false", npm_config_fetch_retries="1",
                       npm_config_fetch_timeout="60000")
    done = subprocess.run(["npm", *arguments], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout


def copy_sources(sources, folder):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith((".ts", ".tsx", ".css", ".html", ".svg", ".json")):
            os.remove(os.path.join(folder, name))
    for name in sorted(os.listdir(sources)):
        if os.path.isfile(os.path.join(sources, name)):
            shutil.copy(os.path.join(sources, name), folder)


def sum_of_sources(folder):
    """The checksum of the copied sources. A bundle stores the checksum of the sources it was made
    of."""
    total = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            total.update(("%s %d\n" % (name, len(content))).encode())
            total.update(content)
    return total.hexdigest() + "\n"


def take_bundle(bundle, folder):
    """Copies the bundle to FOLDER/out if it was made of these sources. Returns whether it was."""
    try:
        with open(os.path.join(bundle, "sources.sha256"), encoding="utf-8") as file:
            if file.read() != sum_of_sources(folder):
                print("web page: %s is of other sources, and is not used" % bundle)
                return False
    except FileNotFoundError:
        return False
    os.makedirs(os.path.join(folder, "out"), exist_ok=True)
    for name in MADE:
        shutil.copy(os.path.join(bundle, name), os.path.join(folder, "out"))
    return True


def leave_bundle(bundle, folder):
    shutil.rmtree(bundle, ignore_errors=True)
    os.makedirs(bundle)
    for name in MADE:
        shutil.copy(os.path.join(folder, "out", name), bundle)
    with open(os.path.join(bundle, "sources.sha256"), "w", encoding="utf-8") as file:
        file.write(sum_of_sources(folder))


def install(folder):
    """Installs the packages of package-lock.json unless they are installed already. Returns nothing
    on success, else the reason."""
    with open(os.path.join(folder, "package-lock.json"), "rb") as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    stamp = os.path.join(folder, "node_modules", ".gpurota")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                return None
    if not shutil.which("npm"):
        return "npm is not installed"
    # --ignore-scripts: no package may run a program of its own on this machine.
    succeeded, said = npm(folder, "ci", "--ignore-scripts")
    if not succeeded:
        return "npm could not install what package-lock.json lists: %s" % said.strip()
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)
    return None


def bundle(folder):
    """Checks and bundles the sources. Returns nothing on success, else what is wrong with the
    sources."""
    for script in (["check"], ["bundle", "--", "--outfile=out/page.js"]):
        succeeded, said = npm(folder, "run", "--silent", *script)
        if not succeeded:
            return said
    return None


def write_licences(folder):
    with open(os.path.join(folder, "out", "licences.txt"), "w", encoding="utf-8") as out:
        for name in BUNDLED:
            with open(os.path.join(folder, "node_modules", name, "LICENSE"),
                      encoding="utf-8") as file:
                out.write("%s\n\n%s\n\n" % (name, file.read().strip()))


def cpp_of(folder):
    arrays, rows, total = [], [], 0
    for number, (path, name, content_type) in enumerate(FILES):
        with open(os.path.join(folder, name), "rb") as file:
            plain = file.read()
        data = gzip.compress(plain, 9, mtime=0)
        total += len(data)
        views = []
        for kind, content in (("Gzip", data), ("Plain", plain)):
            lines = [", ".join("0x%02x" % byte for byte in content[i:i + 20])
                     for i in range(0, len(content), 20)]
            name_of_array = "k%s%d" % (kind, number)
            arrays.append("\nconstexpr unsigned char %s[] = {\n%s};\n"
                          % (name_of_array, ",\n".join(lines)))
            views.append("{reinterpret_cast<const char*>(%s), sizeof %s}"
                         % (name_of_array, name_of_array))
        # A weak tag names the content in any encoding, so both encodings have the same tag.
        rows.append('\n      {"%s", "%s", "W/\\"%s\\"",\n       %s}'
                    % (path, content_type, hashlib.sha256(data).hexdigest()[:20],
                       ",\n       ".join(views)))
    if total > MOST_BYTES:
        sys.exit("the page has %d bytes when compressed, and may have %d" % (total, MOST_BYTES))
    print("web page: %d bytes compressed" % total)
    return HEAD % ("namespace {\n%s\n}  // namespace\n" % "".join(arrays), ",".join(rows))


def main(arguments):
    if len(arguments) not in (3, 4):
        sys.exit(__doc__)
    sources, folder, output = arguments[:3]
    made = os.path.join(sources, "bundle")
    copy_sources(sources, folder)
    missing = None
    if not take_bundle(made, folder):
        missing = install(folder)
        if missing and ("--required" in arguments or output == "--bundle"):
            sys.exit("the web page cannot be built: %s" % missing)
        if missing:
            print("gpurota-web is built without its page: %s" % missing)
        else:
            mistakes = bundle(folder)
            if mistakes:
                sys.exit("the web page has mistakes:\n%s" % mistakes)
            write_licences(folder)
    if output == "--bundle":
        leave_bundle(made, folder)
        return 0
    text = HEAD % ("", "") if missing else cpp_of(folder)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
