// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/yaml_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <re2/re2.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr::dump {

namespace {

using nlohmann::json;

// Classes of UTF-8 characters, by their effect on quoting.
enum class CharClass { kPlain, kNewline, kSpecial };

struct Character {
  size_t length = 1;
  CharClass klass = CharClass::kPlain;
};

// Bytes that form no character count as special characters, one by one.
Character CharacterAt(std::string_view text, size_t at) {
  if (text[at] == '\n') return {1, CharClass::kNewline};
  const size_t length = Utf8Length(text.substr(at));
  if (length == 0) return {1, CharClass::kSpecial};
  return {length, IsControl(text.substr(at, length)) ? CharClass::kSpecial : CharClass::kPlain};
}

struct TextTraits {
  bool newline = false;
  bool special = false;
};

TextTraits Examine(std::string_view text) {
  TextTraits traits;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    traits.newline |= character.klass == CharClass::kNewline;
    traits.special |= character.klass == CharClass::kSpecial;
    at += character.length;
  }
  return traits;
}

// Whether a reader would take the plain text for a number, a time, a truth value or null.
bool ReadsAsOtherType(std::string_view text) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "null", "~", "true", "false", "yes",   "no",    "on", "off",
      "y",    "n", ".nan", ".inf",  "-.inf", "+.inf", "<<", "="};
  if (text.size() <= 5 && std::any_of(kWords.begin(), kWords.end(),
                                      [text](auto word) { return EqualsIgnoreCase(text, word); })) {
    return true;
  }
  if (std::string_view("+-.0123456789").find(text[0]) == std::string_view::npos) return false;
  static const auto& number = *new re2::RE2(
      R"([-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0o[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)"
      R"(|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9_]+([eE][-+]?[0-9]+)?))"
      R"(|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?)");
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), number);
}

// Whether YAML would read plain text without special characters or newlines as structure.
bool ReadsAsStructure(std::string_view text) {
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  if (text.substr(0, 3) == "---" || text.substr(0, 3) == "...") return true;
  const bool spaced = text.size() == 1 || text[1] == ' ';
  if (std::string_view("-?:").find(text[0]) != std::string_view::npos && spaced) return true;
  if (std::string_view(",[]{}#&*!|>'\"%@`").find(text[0]) != std::string_view::npos) return true;
  return text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos;
}

std::string SingleQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

std::string DoubleQuoted(std::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    const auto byte = [&](size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(text[at + i]));
    };
    if (character.klass == CharClass::kNewline) {
      quoted += "\\n";
    } else if (character.klass == CharClass::kPlain) {
      if (text[at] == '"' || text[at] == '\\') quoted += '\\';
      quoted += text.substr(at, character.length);
    } else if (text[at] == '\t') {
      quoted += "\\t";
    } else if (character.length == 3) {
      quoted += fmt::format("\\u{:04x}",
                            (byte(0) & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f));
    } else {
      quoted += fmt::format("\\x{:02x}", character.length == 2 ? byte(1) : byte(0));
    }
    at += character.length;
  }
  return quoted + "\"";
}

std::string OnOneLine(std::string_view text, const TextTraits& traits) {
  if (text.empty()) return "\"\"";
  if (traits.special || traits.newline) return DoubleQuoted(text);
  if (ReadsAsOtherType(text)) return DoubleQuoted(text);
  if (ReadsAsStructure(text)) return SingleQuoted(text);
  return std::string(text);
}

class YamlWriter {
 public:
  void Object(const json& object, size_t indent, bool first_indented) {
    for (const auto& [key, value] : object.items()) {
      if (!first_indented) Indent(indent);
      first_indented = false;
      out_ += OnOneLine(key, Examine(key));
      out_ += ':';
      Value(value, indent, value.is_array() ? indent : indent + 2);
    }
  }

  void Array(const json& array, size_t indent) {
    for (const json& item : array) {
      Indent(indent);
      out_ += '-';
      if (item.is_object() && !item.empty()) {
        out_ += ' ';
        Object(item, indent + 2, true);
      } else {
        Value(item, indent, indent + 2);
      }
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  // Writes a value after a key or a dash in column `indent`; if it is a block, that starts below,
  // in column `block_indent`.
  void Value(const json& value, size_t indent, size_t block_indent) {
    if (value.is_object() && !value.empty()) {
      out_ += '\n';
      Object(value, block_indent, false);
    } else if (value.is_array() && !value.empty()) {
      out_ += '\n';
      Array(value, block_indent);
    } else {
      out_ += ' ';
      Scalar(value, indent + 2);
    }
  }

  void Scalar(const json& value, size_t literal_indent) {
    if (value.is_string()) {
      Text(value.get_ref<const std::string&>(), literal_indent);
    } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
      const double number = value.get<double>();
      out_ += std::isnan(number) ? ".nan\n" : number > 0 ? ".inf\n" : "-.inf\n";
    } else {
      out_ += JsonText(value) + "\n";
    }
  }

  void Text(std::string_view text, size_t indent) {
    const TextTraits traits = Examine(text);
    const bool literal = traits.newline && !traits.special && text.front() != ' ' &&
                         text.front() != '\n' && text.back() != ' ';
    if (!literal) {
      out_ += OnOneLine(text, traits) + "\n";
      return;
    }
    const size_t end = text.find_last_not_of('\n') + 1;
    out_ += end == text.size() ? "|-\n" : end + 1 == text.size() ? "|\n" : "|+\n";
    if (end < text.size()) text.remove_suffix(1);
    for (const std::string_view line : Split(text, '\n')) {
      if (!line.empty()) Indent(indent);
      out_ += line;
      out_ += '\n';
    }
  }

  void Indent(size_t columns) { out_.append(columns, ' '); }

  std::string out_;
};

}  // namespace

std::string ToYaml(const json& tree) {
  if (tree.empty() || !tree.is_structured()) return tree.is_array() ? "[]\n" : "{}\n";
  YamlWriter writer;
  if (tree.is_array()) {
    writer.Array(tree, 0);
  } else {
    writer.Object(tree, 0, false);
  }
  return writer.Take();
}

}  // namespace resmgr::dump
