// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// The description of one key of a configuration: the source of what is printed, of -help, of the
// documentation's tables and of the JSON schema. A plain value.
struct ConfigKey {
  enum class Kind { kBool, kInt, kText, kChoice, kList, kAny, kRaw, kMap, kNames, kItems };

  std::string name{};
  Kind kind = Kind::kText;
  std::string help{};  // `literals` in backticks; for a module: the title of its flags
  std::optional<ConfigNode> value{};  // the present value, at first the default
  std::string default_text{};         // the text for the default, if the value does not show it
  std::vector<std::string> choices{};
  std::string pattern{};  // of kText: a regular expression; empty: any text
  int64_t min = 0;        // of kInt
  int64_t max = 0;
  bool free_names = false;        // of kMap: it has keys of the user's choice, too, with lists
  std::string entry_name{};       // of kNames: "PLUGIN"
  std::vector<ConfigKey> keys{};  // of kMap: its keys; of kNames and kItems: those of an entry
  // The flag of the daemon that sets the key, too, without dashes; empty: there is none.
  std::string flag{};
  std::string flag_value{};  // "FILE"
  // Converts the flag's text to the key's; unset: both have the same form.
  std::function<StatusOr<std::string>(std::string_view text)> text_of_flag{};
};

// Unsets the value of the key and of all below it.
void Unset(ConfigKey& key);

// The keys with their values as a map, without unset ones.
ConfigNode ValuesOf(const std::vector<ConfigKey>& keys);

// The default for people: default_text or the value as text.
std::string DefaultText(const ConfigKey& key);

// A key that is not a map, and its path: "nri.Host.Socket". A key of an entry has the entry's name
// in its path: "nri.Host.Plugins.PLUGIN.Required", that of an item brackets: "Types[].Name".
struct ConfigLeaf {
  std::string path;
  const ConfigKey* key;
};
// All leaves below `keys`, in their order. `keys` must outlive them.
std::vector<ConfigLeaf> LeavesOf(const std::vector<ConfigKey>& keys);

// The JSON schema (draft 7) of a configuration with these keys.
std::string ConfigSchema(const std::vector<ConfigKey>& keys);

// The manual page cri-resmgr.yaml(5) of a configuration with these keys, in the form of
// HelpFormat::kMan (pkg/cmdline/command_document.h).
std::string ConfigManPage(const std::vector<ConfigKey>& keys);

}  // namespace resmgr
