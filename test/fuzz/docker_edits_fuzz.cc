// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/docker/body_edits.h"
#include "pkg/docker/container_body.h"
#include "pkg/docker/host_config.h"
#include "test/fuzz/checks.h"

// The first byte selects the change; the rest is the body of a creation. Reference: another JSON
// reader, which keeps members in their order, and Go's reading of them; the meaning of the edited
// body must be that of the original with the changes.
namespace {

using resmgr::Adjustment;
using Json = nlohmann::json;
using resmgr::fuzz::Check;

// A value with all members of objects, also those of one name.
struct Node {
  Json value;  // of all but objects and lists
  bool object = false;
  bool list = false;
  std::vector<std::pair<std::string, Node>> parts{};  // the names of a list's are empty
};

class TreeMaker {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return Add({}); }
  bool boolean(bool value) { return Add({.value = value}); }
  bool number_integer(number_integer_t value) { return Add({.value = value}); }
  bool number_unsigned(number_unsigned_t value) { return Add({.value = value}); }
  bool number_float(number_float_t, const string_t& text) { return Add({.value = "#" + text}); }
  bool string(string_t& text) { return Add({.value = "'" + text}); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return Open({.value = nullptr, .object = true}); }
  bool key(string_t& name) {
    key_ = name;
    return true;
  }
  bool end_object() { return Close(); }
  bool start_array(size_t) { return Open({.value = nullptr, .list = true}); }
  bool end_array() { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

  Node root;

 private:
  bool Add(Node node) {
    if (open_.empty()) {
      root = std::move(node);
    } else {
      open_.back().second.parts.emplace_back(std::exchange(key_, ""), std::move(node));
    }
    return true;
  }
  bool Open(Node node) {
    open_.emplace_back(std::exchange(key_, ""), std::move(node));
    return true;
  }
  bool Close() {
    auto [name, node] = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(name);
    return Add(std::move(node));
  }

  std::string key_;
  std::vector<std::pair<std::string, Node>> open_;
};

std::optional<Node> Parse(std::string_view text) {
  TreeMaker maker;
  if (!Json::sax_parse(text, &maker)) return std::nullopt;
  return std::move(maker.root);
}

// Go's folding of names of fields.
std::string Folded(const std::string& name) {
  std::string folded;
  for (size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = std::string_view(name).substr(i);
    if (rest.starts_with("\u017f")) {
      folded += 's';
      i += 1;
    } else if (rest.starts_with("\u212a")) {
      folded += 'k';
      i += 2;
    } else {
      folded += name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    }
  }
  return folded;
}

std::string Text(const Node& node) {
  std::string text = node.object ? "{" : node.list ? "[" : node.value.dump();
  for (const auto& [name, part] : node.parts)
    text += Json(name).dump() + ":" + Text(part) + ",";
  return text;
}

// A creation's body as Go reads it, as far as an edit could touch it, and all else unchanged.
struct Meaning {
  bool host_config = false;
  std::map<std::string, std::string> host;  // by folded names
  std::map<std::string, std::string> labels;
  std::vector<std::string> env;
  std::map<std::string, std::string> others;

  bool operator==(const Meaning&) const = default;
};

bool IsNull(const Node& node) {
  return !node.object && !node.list && node.value.is_null();
}

void TakeHost(const Node& node, Meaning& meaning) {
  meaning.host_config = !IsNull(node);
  if (IsNull(node)) return meaning.host.clear();
  for (const auto& [name, value] : node.parts)
    if (!IsNull(value)) meaning.host[Folded(name)] = Text(value);
}

// Takes the fields beside HostConfig, as before version 1.18 of the API.
void TakeHostBeside(const Node& root, Meaning& meaning) {
  for (const auto& [name, value] : root.parts) {
    if (!resmgr::docker::IsHostConfigField(Json(name).dump())) continue;
    meaning.host_config = true;
    if (!IsNull(value)) meaning.host[Folded(name)] = Text(value);
  }
}

Meaning MeaningOf(const Node& root) {
  Meaning meaning;
  for (const auto& [name, value] : root.parts) {
    const std::string folded = Folded(name);
    if (folded == "hostconfig") {
      TakeHost(value, meaning);
    } else if (folded == "labels") {
      if (IsNull(value)) meaning.labels.clear();
      for (const auto& [label, text] : value.parts)
        meaning.labels[label] = IsNull(text)             ? ""
                                : text.value.is_string() ? text.value.get<std::string>().substr(1)
                                                         : "";
    } else if (folded == "env") {
      meaning.env.clear();
      for (const auto& [unused, text] : value.parts)
        meaning.env.push_back(text.value.is_string() ? text.value.get<std::string>().substr(1)
                                                     : "");
    } else {
      meaning.others[name] = Text(value);
    }
  }
  if (!meaning.host_config) TakeHostBeside(root, meaning);
  return meaning;
}

std::string TextValue(const std::string& text) {
  return Json("'" + text).dump();
}

// The changes, as an adjustment and in the reference.
Adjustment Change(uint8_t what, Meaning& meaning) {
  Adjustment change;
  const auto host = [&meaning](const char* name, const std::string& value) {
    meaning.host_config = true;
    meaning.host[name] = value;
  };
  if ((what & 1) != 0) {
    change.values.cpus = *resmgr::CpuSet::Parse("1,3");
    host("cpusetcpus", TextValue("1,3"));
  }
  if ((what & 2) != 0) {
    change.values.cpu_quota = -1;
    // Another key that limits CPUs is in the body, and an edit replaces it by 0.
    if (meaning.host.contains("nanocpus")) host("nanocpus", "0");
    host("cpuquota", "-1");
  }
  if ((what & 4) != 0) {
    change.Wide().memory_limit = 4096;
    host("memory", "4096");
  }
  if ((what & 8) != 0) {
    change.Wide().labels.Set("a", "new\"");
    change.Wide().annotations.Remove("b");
    meaning.labels["a"] = "new\"";
    meaning.labels.erase("annotation.b");
  }
  if ((what & 16) != 0) {
    change.Wide().environment.Set("A", "x\n");
    change.Wide().environment.Remove("B");
    std::erase_if(meaning.env, [](const std::string& text) {
      const std::string name = text.substr(0, text.find('='));
      return name == "A" || name == "B";
    });
    meaning.env.emplace_back("A=x\n");
    meaning.env.emplace_back("B");
  }
  return change;
}

// A null in the middle makes Go forget the HostConfig before it, also a NanoCpus in that one: the
// 0 that is written then means the same as nothing.
void DropZero(Meaning& meaning) {
  const auto found = meaning.host.find("nanocpus");
  if (found != meaning.host.end() && found->second == "0") meaning.host.erase(found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!resmgr::docker::ReadCreateBody(body).ok()) return 0;
  // Texts that are not UTF-8, and halves of surrogates, which Go replaces.
  const auto tree = Parse(body);
  if (!tree) return 0;
  Meaning expected = MeaningOf(*tree);
  const Adjustment change = Change(data[0], expected);
  const auto edited = resmgr::docker::EditBody(resmgr::Operation::kCreateContainer, body, change);
  Check(edited.ok());
  Check(!change.empty() || *edited == body);
  const auto after = Parse(*edited);
  Check(after.has_value());
  Meaning is = MeaningOf(*after);
  DropZero(expected);
  DropZero(is);
  Check(is == expected);
  return 0;
}
