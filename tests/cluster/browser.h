// Runs a real browser without a window on a page, for the tests of the status page.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {

/// Returns the path of a browser of the Chromium family: that in ATOLL_BROWSER, or one of Debian's.
/// Empty if there is none.
inline std::string find_browser() {
  if (const char* chosen = std::getenv("ATOLL_BROWSER"); chosen != nullptr) return chosen;
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-headless-shell"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

/// What a browser has made of a page.
struct BrowsedPage {
  std::string dom;      // the document after its scripts have run for a while
  std::string console;  // messages of the console: errors of scripts, and refused contents
  std::string error;    // all that the browser has written to its standard error
};

/// Opens the page on a screen of a phone. The page's clock advances 4 s, however long this takes.
inline BrowsedPage browse(const CliRunner& runner, const std::string& url) {
  const Ran ran =
      runner.run("/usr/bin/timeout",
                 {"120", find_browser(), "--headless", "--no-sandbox", "--disable-gpu",
                  "--disable-dev-shm-usage", "--disable-breakpad", "--no-first-run",
                  "--user-data-dir=" + runner.folder() + "/browser", "--enable-logging=stderr",
                  "--window-size=360,800", "--virtual-time-budget=4000", "--dump-dom", url});
  EXPECT_EQ(ran.code, 0) << ran.error;
  BrowsedPage page{ran.out, "", ran.error};
  std::istringstream lines(ran.error);
  for (std::string line; std::getline(lines, line);) {
    if (line.contains(":CONSOLE")) page.console += line + "\n";
  }
  return page;
}

}  // namespace atolldb::test
