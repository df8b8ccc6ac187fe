// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_options.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/config/print_config.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

// The only option that may be repeated: its values add up.
constexpr std::string_view kDump = "dump";

// A key with a flag, its path, and the title of its flags.
struct FlagKey {
  std::string path;
  std::string title;
  ConfigKey key;
};

const std::vector<FlagKey>& FlagKeys() {
  static const auto* const kKeys = [] {
    auto* const found = new std::vector<FlagKey>;
    for (const ConfigKey& module : DescribeConfig()) {
      for (const ConfigLeaf& leaf : LeavesOf(module.keys)) {
        if (leaf.key->flag.empty()) continue;
        found->push_back({fmt::format("{}.{}", module.name, leaf.path), module.help, *leaf.key});
      }
    }
    return found;
  }();
  return *kKeys;
}

// A key's help as a sentence, with quotes for backticks that have no quotes between them.
std::string FlagHelp(std::string_view help) {
  std::string text(help);
  for (const std::string_view pair : {"`\"", "\"`"}) {
    for (size_t at = 0; (at = text.find(pair, at)) != std::string::npos;)
      text.replace(at, pair.size(), "\"");
  }
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  std::ranges::replace(text, '`', '"');
  return text + '.';
}

// Returns a document in which only this key has a value.
ConfigNode DocumentOf(std::string_view path, const ConfigNode& value) {
  return MapNode({{std::string(path), 1, value}});
}

std::string TextOf(const ConfigLeaf& leaf) {
  return leaf.key->value ? PrintNode(MapNode({{"", 1, *leaf.key->value}})) : "";
}

bool IsNameLetter(char c) {
  return IsLetterOrDigit(c) || c == '-' || c == '_';
}

std::string_view WithoutComment(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return Trim(text.substr(0, i));
    }
  }
  return text;
}

// `text` begins with a quote.
StatusOr<std::string> QuotedValue(std::string_view text) {
  const size_t end = text.find(text[0], 1);
  if (end == std::string_view::npos) return InvalidArgument("the quote {} is not closed", text[0]);
  const std::string_view behind = Trim(text.substr(end + 1));
  if (!behind.empty() && behind[0] != '#') {
    return InvalidArgument("\"{}\" follows the closing quote", Printable(behind, 64));
  }
  return std::string(text.substr(1, end - 1));
}

// Parses a line that has more than white space and comment.
Status ParseLine(std::string_view line, OptionLine& option) {
  const auto name_end = std::find_if_not(line.begin(), line.end(), IsNameLetter);
  const auto name_size = static_cast<size_t>(name_end - line.begin());
  option.name = line.substr(0, name_size);
  if (option.name.starts_with('-')) {
    return InvalidArgument(
        "options have no dashes here: write {}",
        Printable(line.substr(std::min(line.find_first_not_of('-'), line.size())), 64));
  }
  std::string_view rest = line.substr(name_size);
  const bool separated =
      !rest.empty() && std::string_view(" \t=:").find(rest[0]) != std::string_view::npos;
  if (option.name.empty() || (!rest.empty() && !separated)) {
    return InvalidArgument("\"{}\" is not an option with its value", Printable(line, 64));
  }
  rest = Trim(rest);
  const bool has_sign = rest.starts_with('=') || rest.starts_with(':');
  if (has_sign) rest = Trim(rest.substr(1));
  if (rest.starts_with('"') || rest.starts_with('\'')) {
    RESMGR_ASSIGN_OR_RETURN(option.value, QuotedValue(rest));
    return OkStatus();
  }
  rest = WithoutComment(rest);
  if (has_sign || !rest.empty()) option.value.emplace(rest);
  return OkStatus();
}

}  // namespace

void ConfigOptions::DeclareFlags(CommandLine& line, const ConfigChecks& checks) {
  for (const auto& [path, title, key] : FlagKeys()) {
    line.Group(title);
    line.Flag(key.flag, key.flag_value, FlagHelp(key.help), DefaultText(key),
              [this, checks, name = key.flag](std::string_view value) {
                return Set(name, value, checks);
              });
  }
}

Status ConfigOptions::Set(std::string_view flag, std::string_view value,
                          const ConfigChecks& checks) {
  const auto known = std::ranges::find_if(
      FlagKeys(), [flag](const FlagKey& other) { return other.key.flag == flag; });
  if (known == FlagKeys().end()) return InvalidArgument("there is no such flag");
  ConfigNode node = ScalarNode(value);
  if (known->key.text_of_flag) {
    RESMGR_ASSIGN_OR_RETURN(node.text, known->key.text_of_flag(value));
  }
  node.line = 0;
  // The source is empty for the check: the caller puts the flag's name before messages.
  node.source = std::make_shared<const std::string>();
  Config scratch;
  RESMGR_RETURN_IF_ERROR(ReadInto(DocumentOf(known->path, node), checks, scratch));
  node.source = std::make_shared<const std::string>(fmt::format("{}{}", origin_prefix, flag));
  ConfigNode& kept = settings_[known->path];
  if (known->key.kind == ConfigKey::Kind::kList) {
    kept.kind = ConfigNode::Kind::kList;
    kept.items.push_back(std::move(node));
  } else {
    kept = std::move(node);
  }
  return OkStatus();
}

bool ConfigOptions::Has(std::string_view flag) const {
  return std::ranges::any_of(FlagKeys(), [&](const FlagKey& known) {
    return known.key.flag == flag && settings_.contains(known.path);
  });
}

std::optional<std::string> ConfigOptions::policy() const {
  if (!Has("policy")) return std::nullopt;
  Config config;
  ApplyTo(config);
  return config.policy.active;
}

void ConfigOptions::ApplyTo(Config& config) const {
  // A flag must not set `stated`, which reports that the configuration's text has the module.
  const bool stated = config.hooks.stated;
  // Set has checked the values.
  for (const auto& [path, value] : settings_)
    (void)ReadInto(DocumentOf(path, value), {}, config);
  config.hooks.stated = stated;
}

std::vector<std::string> ConfigOptions::Overridden(const Config& config) const {
  Config applied = config;
  ApplyTo(applied);
  const std::vector<ConfigKey> given = DescribeConfig(config);
  const std::vector<ConfigKey> usual = DescribeConfig();
  const std::vector<ConfigKey> result = DescribeConfig(applied);
  const std::vector<ConfigLeaf> usual_leaves = LeavesOf(usual);
  const std::vector<ConfigLeaf> result_leaves = LeavesOf(result);
  std::vector<std::string> keys;
  for (size_t i = 0; const ConfigLeaf& leaf : LeavesOf(given)) {
    const std::string text = TextOf(leaf);
    const bool differs = text != TextOf(usual_leaves[i]) && text != TextOf(result_leaves[i]);
    ++i;
    if (!differs || leaf.path == "policy.Active") continue;
    std::string_view key = leaf.path;
    // The flag sets all resources together, of which CPU is the only one, so the key is shown
    // without "CPU".
    if (key.ends_with("Resources.CPU")) key.remove_suffix(4);
    keys.emplace_back(key);
  }
  return keys;
}

Status ApplyOptionLines(const std::vector<OptionLine>& lines, CommandLine& line,
                        ConfigOptions& options) {
  std::map<std::string_view, std::string_view> seen;
  Problems problems;
  for (const OptionLine& option : lines) {
    const auto [first, is_first] = seen.emplace(option.name, option.where);
    if (!is_first && option.name != kDump) {
      problems.Add(InvalidArgument("{}: {}: given twice, first at {}", option.where, option.name,
                                   first->second));
      continue;
    }
    options.origin_prefix = fmt::format("{}: ", option.where);
    const std::optional<std::string_view> value = option.value;
    const bool told = problems.open();
    problems.Add(line.SetOption(option.name, value), option.where);
    if (!told) break;
  }
  return problems.ToStatus();
}

std::vector<OptionLine> ParseOptionLines(std::string_view text, std::string_view source,
                                         Problems& problems) {
  std::vector<OptionLine> options;
  const StatusOr<std::string_view> checked = CheckConfigText(text, source);
  problems.Add(checked.status());
  size_t number = 0;
  for (const std::string_view line : Split(checked.value_or(""), '\n')) {
    ++number;
    const std::string_view content = Trim(line);
    if (content.empty() || content[0] == '#') continue;
    OptionLine option{
        .name = "", .value = std::nullopt, .where = fmt::format("{}:{}", source, number)};
    const Status status = ParseLine(content, option);
    problems.Add(status, option.where);
    if (status.ok()) options.push_back(std::move(option));
  }
  return options;
}

}  // namespace resmgr
