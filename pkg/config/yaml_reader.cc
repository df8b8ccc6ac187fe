// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/yaml_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr size_t kMaxDepth = 64;
// The budget of all documents of one text.
constexpr YamlBudget kManyDocuments{.values = 1'000'000, .text = kMaxYamlDocumentsSize};
constexpr YAML::anchor_t kNoAnchor = 0;
// Merges the maps behind it into the map that has this key, by an older version of YAML.
constexpr std::string_view kMergeKey = "<<";

constexpr std::string_view kNoBreakSpace = "\xc2\xa0";

// Builds the tree from the parser's events. Reports errors by the library's own exception, which
// has the place and is caught where the library is called.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view source, size_t max_documents, YamlBudget& budget)
      : source_(std::make_shared<const std::string>(source)),
        max_documents_(max_documents),
        budget_(budget) {}

  std::vector<ConfigNode> TakeRoots() { return std::move(roots_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    document_ = mark;
    if (++documents_ > max_documents_ + 1) RefuseDocument();
    roots_.push_back(NewNode(mark, ConfigNode::Kind::kNull));
  }
  // Behind the last allowed document there may be an empty one, as after "---" at the end.
  void OnDocumentEnd() override {
    if (roots_.size() > max_documents_) roots_.pop_back();
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (AtKey()) {
      throw YAML::ParserException(mark,
                                  "a key must be a single value, and null has to be in quotes");
    }
    Add(mark, anchor, NewNode(mark, ConfigNode::Kind::kNull));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node = NewNode(mark, ConfigNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    Spend(mark, node);
    if (AtKey()) {
      if (value == kMergeKey && !node.quoted) {
        throw YAML::ParserException(mark,
                                    "merge keys (<<) are not read: write the keys themselves");
      }
      if (value.find(kNoBreakSpace) != std::string::npos && !node.quoted) {
        throw YAML::ParserException(mark,
                                    "the key has a no-break space (U+00A0), which does not indent "
                                    "in YAML: write spaces");
      }
      Keep(mark, anchor, node);
      TakeKey(mark, value);
    } else {
      Add(mark, anchor, std::move(node));
    }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw YAML::ParserException(mark, "an alias inside its own value");
    SpendTree(mark, found->second, open_.size());
    Add(mark, kNoAnchor, found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or map whose end has not been reached yet.
  struct OpenNode {
    ConfigNode node;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    bool has_key = false;  // for a map: the next value belongs to the last entry
    std::set<std::string> keys{};
  };

  ConfigNode NewNode(const YAML::Mark& mark, ConfigNode::Kind kind) const {
    ConfigNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    node.source = source_;
    return node;
  }

  bool AtKey() const {
    return !open_.empty() && open_.back().node.kind == ConfigNode::Kind::kMap &&
           !open_.back().has_key;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    if (!open_.back().keys.insert(key).second) {
      throw YAML::ParserException(mark, "duplicate key \"" + Printable(key, 64) + "\"");
    }
    open_.back().node.entries.push_back({key, mark.line + 1, {}});
    open_.back().has_key = true;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    if (AtKey()) throw YAML::ParserException(mark, "a key must be a single value");
    if (open_.size() >= kMaxDepth) throw YAML::ParserException(mark, "nested too deeply");
    ConfigNode node = NewNode(mark, kind);
    Spend(mark, node);
    open_.push_back({std::move(node), anchor, mark});
  }

  void Close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    Add(closed.mark, closed.anchor, std::move(closed.node));
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, ConfigNode node) {
    if (AtKey()) throw YAML::ParserException(mark, "a key must be a single value");
    Keep(mark, anchor, node);
    if (open_.empty()) {
      roots_.back() = std::move(node);
    } else if (open_.back().node.kind == ConfigNode::Kind::kList) {
      open_.back().node.items.push_back(std::move(node));
    } else {
      ConfigNode::Entry& entry = open_.back().node.entries.back();
      // An absent value has the place of the next token, which may be the end of the text.
      if (node.kind == ConfigNode::Kind::kNull) node.line = entry.line;
      entry.value = std::move(node);
      open_.back().has_key = false;
    }
  }

  // Keeps a value for the aliases of its anchor.
  void Keep(const YAML::Mark& mark, YAML::anchor_t anchor, const ConfigNode& node) {
    if (anchor == kNoAnchor) return;
    SpendTree(mark, node, open_.size());
    anchors_[anchor] = node;
  }

  [[noreturn]] void RefuseDocument() const {
    throw YAML::ParserException(
        document_, max_documents_ == 1
                       ? "only one document is allowed"
                       : fmt::format("more than {} documents are not allowed", max_documents_));
  }

  // Called for each value that is not null.
  void Spend(const YAML::Mark& mark, const ConfigNode& node) {
    if (roots_.size() > max_documents_) RefuseDocument();
    SpendText(mark, node.text);
    if (budget_.values == 0) throw YAML::ParserException(mark, "too many values");
    --budget_.values;
  }

  void SpendText(const YAML::Mark& mark, std::string_view text) {
    if (budget_.text < text.size()) throw YAML::ParserException(mark, "too many values");
    budget_.text -= text.size();
  }

  // Values repeated by an alias count again: a few lines of nested aliases can stand for billions.
  void SpendTree(const YAML::Mark& mark, const ConfigNode& node, size_t depth) {
    if (depth > kMaxDepth) throw YAML::ParserException(mark, "nested too deeply");
    Spend(mark, node);
    for (const ConfigNode& item : node.items)
      SpendTree(mark, item, depth + 1);
    for (const ConfigNode::Entry& entry : node.entries) {
      SpendText(mark, entry.key);
      SpendTree(mark, entry.value, depth + 1);
    }
  }

  std::shared_ptr<const std::string> source_;
  size_t max_documents_;
  YamlBudget& budget_;
  size_t documents_ = 0;
  YAML::Mark document_;  // where the present document begins
  std::vector<ConfigNode> roots_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
};

// A hint for a line (from 1) with tabs, which the library's message does not name and editors show
// as indentation.
std::string_view TabHint(std::string_view text, int line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  const std::string_view indent = text.substr(0, text.find_first_not_of(" \t"));
  return indent.find('\t') == std::string_view::npos ? "" : "; tabs do not indent in YAML";
}

// The library's words for wrong indentation tell nothing to users.
std::string InPlainWords(const std::string& message) {
  if (message == YAML::ErrorMsg::END_OF_MAP || message == YAML::ErrorMsg::END_OF_SEQ) {
    return fmt::format(
        "wrong indentation: this line belongs neither to the {} above nor to what is "
        "around it ({})",
        message == YAML::ErrorMsg::END_OF_MAP ? "keys" : "list", message);
  }
  return message;
}

// The library keeps each token of a line that may turn out to be a key, in about 200 bytes: a
// megabyte of brackets would take a quarter of a gigabyte.
constexpr size_t kMaxSignsOfALine = 200'000;

Status CheckLines(std::string_view text, std::string_view source, const YamlBudget& budget) {
  const size_t most = std::min(budget.values, kMaxSignsOfALine);
  int line = 1;
  size_t signs = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      signs = 0;
    } else if (c == '[' || c == ']' || c == '{' || c == '}' || c == ',') {
      if (++signs > most) {
        return InvalidArgument(
            "{}:{}: too many values in one line: write it in several lines, with at most {} "
            "brackets and commas in each",
            source, line, most);
      }
    }
  }
  return OkStatus();
}

StatusOr<std::vector<ConfigNode>> Parse(std::string_view text, std::string_view source,
                                        size_t max_documents, size_t max_size, YamlBudget& budget) {
  RESMGR_ASSIGN_OR_RETURN(text, CheckConfigText(text, source, max_size));
  RESMGR_RETURN_IF_ERROR(CheckLines(text, source, budget));
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(source, max_documents, budget);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    return InvalidArgument("{}:{}: {}{}", source, line, InPlainWords(error.msg),
                           TabHint(text, line));
  }
  return builder.TakeRoots();
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  // The bytes 0xfe and 0xff are invalid in UTF-8, but begin texts in UTF-16.
  return c == '\t' || c == '\n' || c == '\r' || (byte >= 0x20 && byte != 0x7f && byte < 0xfe);
}

}  // namespace

StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source, YamlBudget& budget) {
  RESMGR_ASSIGN_OR_RETURN(std::vector<ConfigNode> roots,
                          Parse(text, source, 1, kMaxConfigSize, budget));
  if (!roots.empty()) return std::move(roots.front());
  ConfigNode nothing;
  nothing.source = std::make_shared<const std::string>(source);
  return nothing;
}

StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source) {
  YamlBudget budget;
  return ParseYaml(text, source, budget);
}

StatusOr<std::vector<ConfigNode>> ParseYamlDocuments(std::string_view text,
                                                     std::string_view source) {
  YamlBudget budget = kManyDocuments;
  return Parse(text, source, kMaxYamlDocuments, kMaxYamlDocumentsSize, budget);
}

StatusOr<std::string_view> CheckConfigText(std::string_view text, std::string_view source,
                                           size_t max_size) {
  if (text.size() > max_size) {
    return InvalidArgument("{}:1: it has {} bytes, more than {}", source, text.size(), max_size);
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto bad = std::find_if_not(text.begin(), text.end(), IsText);
  if (bad != text.end()) {
    return InvalidArgument("{}:{}: byte 0x{:02x} is not allowed in a text", source,
                           std::count(text.begin(), bad, '\n') + 1,
                           static_cast<unsigned char>(*bad));
  }
  return text;
}

}  // namespace resmgr
