// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/print_config.h"

#include <algorithm>

#include <fmt/format.h>

namespace resmgr {

namespace {

bool IsPlain(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  // Plain words need no quotes; a leading sign could have another meaning in YAML, and so has
  // "null".
  return !text.empty() && (is_word(text[0]) || text[0] == '/') && text != "null" &&
         text != "Null" && text != "NULL" &&
         std::all_of(text.begin(), text.end(), [&is_word](char c) {
           return is_word(c) || c == '-' || c == '.' || c == '/' || c == '+';
         });
}

std::string Scalar(std::string_view text, bool quoted) {
  if (!quoted && IsPlain(text)) return std::string(text);
  std::string written = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      written += '\\';
      written += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      written += fmt::format("\\x{:02x}", byte);
    } else {
      written += c;
    }
  }
  return written + '"';
}

void AppendNode(const ConfigNode& node, std::string_view indentation, std::string& out);

// Appends the value after "KEY:" or "-", up to the end of its last line.
void AppendValue(const ConfigNode& value, std::string_view indentation, std::string& out) {
  switch (value.kind) {
    case ConfigNode::Kind::kNull:
      out += " null\n";
      return;
    case ConfigNode::Kind::kScalar:
      out += ' ' + Scalar(value.text, value.quoted) + '\n';
      return;
    case ConfigNode::Kind::kList:
      if (value.items.empty()) {
        out += " []\n";
        return;
      }
      break;
    case ConfigNode::Kind::kMap:
      if (value.entries.empty()) {
        out += " {}\n";
        return;
      }
      break;
  }
  out += '\n';
  AppendNode(value, fmt::format("{}  ", indentation), out);
}

// Appends a non-empty list or map, each element on a line of its own.
void AppendNode(const ConfigNode& node, std::string_view indentation, std::string& out) {
  for (const ConfigNode& item : node.items) {
    out += fmt::format("{}-", indentation);
    AppendValue(item, indentation, out);
  }
  for (const ConfigNode::Entry& entry : node.entries) {
    out += fmt::format("{}{}:", indentation, Scalar(entry.key, false));
    AppendValue(entry.value, indentation, out);
  }
}

ConfigNode PolicyNode(const PolicyConfig& policy) {
  ConfigNode node = MapNode({{"Active", 1, ScalarNode(policy.active)}});
  const auto add_cpus = [&node](const char* key, const std::optional<CpuConstraint>& cpus) {
    if (!cpus) return;
    node.entries.push_back({key, 1, MapNode({{"CPU", 1, ScalarNode(ToString(*cpus))}})});
  };
  add_cpus("AvailableResources", policy.available_cpus);
  add_cpus("ReservedResources", policy.reserved_cpus);
  node.entries.push_back({"StartFailurePolicy", 1, ScalarNode(ToString(policy.start_failure))});
  node.entries.push_back({"RefusedUpdates", 1, ScalarNode(ToString(policy.refused_updates))});
  for (const auto& [name, section] : policy.sections)
    node.entries.push_back({name, 1, section});
  return node;
}

ConfigNode DumpNode(const DumpConfig& dump) {
  return MapNode({{"Config", 1, ListNode(dump.specs)}, {"File", 1, ScalarNode(dump.file)}});
}

ConfigNode LoggerNode(const LoggerConfig& logger) {
  return MapNode({{"Level", 1, ScalarNode(logger.level)},
                  {"Debug", 1, ScalarNode(logger.debug)},
                  {"Source", 1, ScalarNode(logger.source)},
                  {"Format", 1, ScalarNode(logger.format)}});
}

}  // namespace

std::string PrintConfig(const Config& config) {
  return PrintNode(MapNode({{"policy", 1, PolicyNode(config.policy)},
                            {"dump", 1, DumpNode(config.dump)},
                            {"logger", 1, LoggerNode(config.logger)},
                            {"audit", 1, AuditNode(config.audit)},
                            {"usage", 1, UsageNode(config.usage)},
                            {"cpuFiles", 1, CpuFilesNode(config.cpu_files)},
                            {"nri", 1, NriNode(config.nri)},
                            {"hooks", 1, HooksNode(config.hooks)},
                            {"runtimes", 1, RuntimesNode(config.runtimes)},
                            {"runtimeClasses", 1, RuntimeClassesNode(config.runtimes)}}));
}

std::string PrintNode(const ConfigNode& node) {
  std::string out;
  AppendNode(node, "", out);
  return out;
}

}  // namespace resmgr
