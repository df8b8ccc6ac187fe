// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/json_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Checks values and finds their ends.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_]))
      ++at_;
  }
  // Moves from the first byte of a value to the byte behind the value.
  bool SkipValue() {
    std::array<bool, kMaxJsonDepth> in_object{};
    size_t depth = 0;
    while (true) {
      SkipSpace();
      const char c = Peek();
      bool empty = false;
      if (c == '{' || c == '[') {
        if (depth == kMaxJsonDepth) return false;
        in_object.at(depth++) = c == '{';
        ++at_;
        SkipSpace();
        if (Peek() != (c == '{' ? '}' : ']')) {
          if (c == '{' && !SkipName()) return false;
          continue;
        }
        empty = true;
      } else if (!SkipScalar()) {
        return false;
      } else if (depth == 0) {
        return true;
      }
      // The position is behind a value, or before the end of an empty object or list.
      while (true) {
        SkipSpace();
        const char next = Peek();
        const bool object = in_object.at(depth - 1);
        if (next == ',') {
          if (empty) return false;
          ++at_;
          if (object && !SkipName()) return false;
          break;
        }
        if (next != (object ? '}' : ']')) return false;
        ++at_;
        empty = false;
        if (--depth == 0) return true;
      }
    }
  }
  // Skips a member's name and its colon.
  bool SkipName() {
    SkipSpace();
    return Peek() == '"' && SkipText() && SkipColon();
  }
  bool SkipColon() {
    SkipSpace();
    if (Peek() != ':') return false;
    ++at_;
    return true;
  }
  // Moves from the beginning of an object or a list, or from behind one of its items, to the next
  // item. False: there is none.
  bool NextItem() {
    SkipSpace();
    if (at_ > 0 && Peek() != ',') return false;
    ++at_;
    SkipSpace();
    return Peek() != '}' && Peek() != ']';
  }
  bool SkipText() {
    for (++at_; at_ < text_.size(); ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return false;
      if (c != '\\') continue;
      ++at_;
      if (Peek() == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          if (HexDigit(Peek()) < 0) return false;
        }
      } else if (Peek() == '\0' ||
                 std::string_view(R"("\/bfnrt)").find(Peek()) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }

 private:
  // The next byte; NUL at the end, since JSON allows NUL nowhere outside of strings.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool SkipScalar() {
    if (Peek() == '"') return SkipText();
    for (const std::string_view word : {"null", "true", "false"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return true;
    }
    return SkipNumber();
  }
  bool SkipDigits() {
    if (!IsDigit(Peek())) return false;
    while (IsDigit(Peek()))
      ++at_;
    return true;
  }
  bool SkipNumber() {
    if (Peek() == '-') ++at_;
    if (Peek() == '0') {
      ++at_;
    } else if (!SkipDigits()) {
      return false;
    }
    if (Peek() == '.') {
      ++at_;
      if (!SkipDigits()) return false;
    }
    if (Peek() != 'e' && Peek() != 'E') return true;
    ++at_;
    if (Peek() == '+' || Peek() == '-') ++at_;
    return SkipDigits();
  }

  std::string_view text_;
  size_t at_ = 0;
};

void AppendUtf8(uint32_t code, std::string& text) {
  const auto byte = [&text](uint32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

// The value of "\uXXXX" at `at`; nullopt if there is none.
std::optional<uint32_t> HexAt(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("\\u")) return std::nullopt;
  uint32_t code = 0;
  for (size_t i = at + 2; i < at + 6; ++i)
    code = code * 16 + static_cast<uint32_t>(HexDigit(text[i]));
  return code;
}

// Decodes the escape at `at` and moves `at` behind it.
void DecodeEscape(std::string_view text, size_t& at, std::string& decoded) {
  const auto code = HexAt(text, at);
  if (!code) {
    constexpr std::string_view kNames = "bfnrt";
    constexpr std::string_view kBytes = "\b\f\n\r\t";
    const char c = text[at + 1];
    const size_t named = kNames.find(c);
    decoded += named == std::string_view::npos ? c : kBytes[named];
    at += 2;
    return;
  }
  at += 6;
  if (*code < 0xD800 || *code > 0xDFFF) return AppendUtf8(*code, decoded);
  const auto low = HexAt(text, at);
  if (*code < 0xDC00 && low && *low >= 0xDC00 && *low <= 0xDFFF) {
    at += 6;
    AppendUtf8(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00), decoded);
  } else {
    decoded += kReplacement;
  }
}

}  // namespace

Status CheckJson(std::string_view text) {
  Scanner scanner(text);
  const bool valid = scanner.SkipValue();
  scanner.SkipSpace();
  if (valid && scanner.at() == text.size()) return OkStatus();
  return InvalidArgument("malformed or too deeply nested JSON at byte {}", scanner.at());
}

void ForEachMember(std::string_view object, const OnMember& on_member) {
  Scanner scanner(object);
  while (scanner.NextItem()) {
    const size_t name = scanner.at();
    scanner.SkipText();
    const size_t name_end = scanner.at();
    scanner.SkipColon();
    scanner.SkipSpace();
    const size_t value = scanner.at();
    scanner.SkipValue();
    on_member(object.substr(name, name_end - name), object.substr(value, scanner.at() - value));
  }
}

void ForEachElement(std::string_view list, const OnElement& on_element) {
  Scanner scanner(list);
  while (scanner.NextItem()) {
    const size_t value = scanner.at();
    scanner.SkipValue();
    on_element(list.substr(value, scanner.at() - value));
  }
}

std::vector<std::string> ElementsWithout(std::string_view list,
                                         const std::function<bool(std::string_view value)>& drops) {
  std::vector<std::string> elements;
  if (!IsJsonList(list)) return elements;
  ForEachElement(list, [&](std::string_view element) {
    if (!drops(element)) elements.emplace_back(element);
  });
  return elements;
}

std::string DecodeJsonText(std::string_view quoted) {
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\') {
      DecodeEscape(text, at, decoded);
    } else {
      decoded += text[at++];
    }
  }
  return decoded;
}

std::string TextOf(std::string_view value) {
  return IsJsonText(value) ? DecodeJsonText(value) : "";
}

std::string EncodeJsonText(std::string_view text) {
  return JsonText(text);
}

bool IsField(std::string_view quoted, std::string_view field) {
  // An escape of six bytes is the longest form of a character.
  constexpr size_t kLongestForm = 6;
  const size_t size = quoted.size() - 2;
  if (size < field.size() || size > kLongestForm * field.size()) return false;
  const auto is_plain = [](char c) { return c != '\\' && static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(quoted, is_plain)) {
    return std::ranges::equal(quoted.substr(1, size), field, {}, LowerCase, LowerCase);
  }
  return FoldedName(DecodeJsonText(quoted)) == FoldedName(field);
}

std::string_view LastMember(std::string_view object, std::string_view field) {
  std::string_view last;
  ForEachMember(object, [&last, field](std::string_view name, std::string_view value) {
    if (IsField(name, field)) last = value;
  });
  return last;
}

std::optional<std::string> LastText(std::string_view body, std::string_view field) {
  std::optional<std::string> last;
  if (!CheckJson(body).ok() || !IsJsonObject(Trim(body))) return last;
  ForEachMember(Trim(body), [&last, field](std::string_view name, std::string_view value) {
    if (IsField(name, field) && IsJsonText(value)) last = DecodeJsonText(value);
  });
  return last;
}

std::string JoinJson(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace resmgr::docker
