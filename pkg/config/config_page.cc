// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_page.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/cmdline/man_page.h"

namespace resmgr {
namespace {

// Backticks are of the documentation's tables.
std::string Plain(std::string text) {
  std::erase(text, '`');
  std::ranges::replace(text, '\n', ' ');
  return TroffText(text);
}

void AppendKey(const ConfigLeaf& leaf, std::string& page) {
  const ConfigKey& key = *leaf.key;
  page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", TroffText(leaf.path), Plain(key.help));
  if (!key.choices.empty()) {
    page += Plain(fmt::format("One of: {}.", fmt::join(key.choices, ", "))) + '\n';
  }
  if (const std::string value = DefaultText(key); !value.empty()) {
    page += fmt::format(".br\nDefault: {}\n", Plain(value));
  }
  if (!key.flag.empty()) page += fmt::format(".br\nFlag: \\fB\\-{}\\fR\n", TroffText(key.flag));
}

}  // namespace

std::string ConfigManPage(const std::vector<ConfigKey>& keys) {
  std::string page =
      ".\\\" Made by `cri-resmgr -print-config-page`.\n"
      ".TH \"CRI\\-RESMGR.YAML\" 5 \"\" \"cri\\-resmgr\" \"File Formats\"\n"
      ".SH NAME\ncri\\-resmgr.yaml \\- configuration of cri\\-resmgr\n"
      ".SH SYNOPSIS\n.I /etc/cri\\-resmgr/cri\\-resmgr.yaml\n"
      ".SH DESCRIPTION\n"
      "A YAML document with a map for each module. Keys match without regard to case; unknown keys "
      "are errors. A path such as \\fBpolicy.Active\\fR means the key Active in the map policy; a "
      "name in capitals in it stands for a name of yours. Flags of \\fBcri\\-resmgr\\fR(8) have "
      "precedence over the file. The file is checked by \\fBcri\\-resmgr \\-config FILE "
      "\\-check\\-config\\fR.\n"
      ".SH KEYS\n";
  std::string_view section;
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    const std::string_view own = std::string_view(leaf.path).substr(0, leaf.path.find('.'));
    if (own != section) page += fmt::format(".SS \"{}\"\n", TroffText(own));
    section = own;
    AppendKey(leaf, page);
  }
  return page + ".SH SEE ALSO\n\\fBcri\\-resmgr\\fR(8), \\fBcri\\-resmgr\\-ctl\\fR(8)\n";
}

}  // namespace resmgr
