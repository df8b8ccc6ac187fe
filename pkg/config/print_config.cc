// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/print_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "pkg/base/characters.h"

namespace resmgr {

namespace {

bool IsPlain(std::string_view text) {
  const auto is_word = [](char c) { return IsLetterOrDigit(c) || c == '_'; };
  // Plain words need no quotes; a leading sign could have another meaning in YAML, and "null" has
  // one.
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
  if (value.kind == ConfigNode::Kind::kScalar) {
    out += ' ' + Scalar(value.text, value.quoted) + '\n';
  } else if (value.items.empty() && value.entries.empty()) {
    const bool list = value.kind == ConfigNode::Kind::kList;
    out += value.kind == ConfigNode::Kind::kNull ? " null\n" : list ? " []\n" : " {}\n";
  } else {
    out += '\n';
    AppendNode(value, fmt::format("{}  ", indentation), out);
  }
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

}  // namespace

std::string PrintConfig(const Config& config) {
  return PrintNode(ValuesOf(DescribeConfig(config)));
}

std::string PrintNode(const ConfigNode& node) {
  std::string out;
  AppendNode(node, "", out);
  return out;
}

}  // namespace resmgr
