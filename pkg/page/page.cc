// SPDX-License-Identifier: Apache-2.0
#include "pkg/page/page.h"

#include <array>
#include <chrono>
#include <utility>

#include <arpa/inet.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "pkg/admin/node_json.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/page/web_files.h"

namespace resmgr {
namespace {

constexpr std::string_view kRoot = "/page/";
constexpr std::string_view kData = "data/";
constexpr std::string_view kJson = "application/json; charset=utf-8";
// As much as a quiet node has in a day, but not too much to send each second.
constexpr int kHistoryEntries = 200;
// Limit in bytes, longer than a namespace, a pod's and a container's name together.
constexpr size_t kLongestWhat = 1024;

// Adds the headers of every answer.
void AddHeaders(HttpAnswer& answer) {
  answer.headers.insert(
      answer.headers.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"X-Frame-Options", "DENY"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cross-Origin-Opener-Policy", "same-origin"},
       {"Cache-Control", "no-store"}});
}

HttpAnswer Refusal(int code, std::string why) {
  HttpAnswer answer{.code = code, .body = std::move(why) + "\n"};
  if (code == 405) answer.headers = {{"Allow", "GET, HEAD"}};
  if (code == 503) answer.headers = {{"Retry-After", "1"}};
  return answer;
}

HttpAnswer RefusalFor(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return Refusal(400, std::string(Message(status)));
    // There is no such container, or the null policy is active, which places none.
    case StatusCode::kNotFound:
    case StatusCode::kFailedPrecondition:
      return Refusal(404, std::string(Message(status)));
    default:
      return Refusal(503, std::string(Message(status)));
  }
}

std::string_view TypeOf(std::string_view file) {
  if (file.ends_with(".html")) return "text/html; charset=utf-8";
  if (file.ends_with(".css")) return "text/css; charset=utf-8";
  if (file.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

bool IsNumber(const std::string& host) {
  std::array<char, sizeof(in6_addr)> address{};
  if (host.starts_with('[') && host.ends_with(']')) {
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), address.data()) == 1;
  }
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1;
}

// The host without the port, in lower case: "node7" for "Node7:8891", "[::1]" for "[::1]:8891".
std::string HostOf(std::string_view host_and_port) {
  const size_t colon = host_and_port.rfind(':');
  const size_t bracket = host_and_port.rfind(']');
  const bool port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return ToLower(host_and_port.substr(0, port ? colon : host_and_port.size()));
}

struct Question {
  std::string method;
  std::string message;
};

StatusOr<Question> ExplainQuestion(std::string_view query) {
  constexpr std::string_view kWhat = "what=";
  const auto what = query.starts_with(kWhat)
                        ? PercentDecoded(query.substr(kWhat.size()), UrlPart::kPath)
                        : std::nullopt;
  if (!what || what->empty() || what->size() > kLongestWhat) {
    return InvalidArgument("explain needs what=CONTAINER, of {} bytes at most", kLongestWhat);
  }
  const nlohmann::json message = {{"what", *what}};
  return Question{"Explain", JsonText(message)};
}

// kNotFound: there is no data of this name.
StatusOr<Question> QuestionOf(std::string_view name, std::string_view query) {
  if (name == "explain") return ExplainQuestion(query);
  if (name == "status") return Question{"Status", "{}"};
  if (name == "topology") return Question{"Topology", R"({"form":"json"})"};
  if (name == "containers") return Question{"Containers", "{}"};
  if (name == "pools") return Question{"Pools", "{}"};
  if (name == "history")
    return Question{"History", fmt::format(R"({{"count":{}}})", kHistoryEntries)};
  if (name == "top") return Question{"Top", R"({"wide":true})"};
  if (name == "nodes") return Question{"Top", R"({"what":"nodes"})"};
  if (name == "busy") return Question{"Cpus", R"({"brief":true})"};
  return NotFound("there is no such data");
}

HttpAnswer NodeAnswer(const std::string& name) {
  const nlohmann::json node = {{"name", name}, {"time", Rfc3339(std::chrono::system_clock::now())}};
  return {.type = std::string(kJson), .body = JsonText(node)};
}

// Whether a page of another site asks. Browsers of before 2023 tell that by Origin alone.
bool IsOfAnotherSite(const HttpRequest& request) {
  const std::string& site = request.fetch_site;
  if (!site.empty()) return site != "same-origin" && site != "none";
  constexpr std::string_view kScheme = "://";
  const size_t scheme = request.origin.find(kScheme);
  if (scheme == std::string::npos) return !request.origin.empty();  // "null"
  return !EqualsIgnoreCase(request.origin.substr(scheme + kScheme.size()), request.host);
}

HttpAnswer ToPage() {
  return {.code = 308, .headers = {{"Location", std::string(kRoot)}}};
}

}  // namespace

Page::Page(Options options) : options_(std::move(options)), questions_(options_.limits) {}

void Page::Open(const NodeView& view) {
  questions_.Open(view.loop, options_.methods(view));
}

void Page::Close() {
  questions_.Close();
}

HttpAnswer Page::AnswerData(const HttpRequest& request, std::string_view name) {
  if (IsOfAnotherSite(request)) return Refusal(403, "this is not for other sites");
  if (name == "node") return NodeAnswer(options_.node_name);
  const StatusOr<Question> question = QuestionOf(name, request.query);
  if (!question.ok()) return RefusalFor(question.status());
  const StatusOr<LoopQuestions::Text> text =
      questions_.Ask(fmt::format("/cri_resmgr.v1.Admin/{}", question->method), question->message);
  if (!text.ok()) return RefusalFor(text.status());
  return {.type = std::string(kJson), .body = **text};
}

HttpAnswer Page::Choose(const HttpRequest& request) {
  const std::string host = HostOf(request.host);
  if (!IsNumber(host) && host != "localhost" && !options_.hosts.contains(host)) {
    return Refusal(421, "ask by an address, by localhost or by the name of this node, not as \"" +
                            Printable(request.host, 256) + '"');
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return Refusal(405, "this page can only be read");
  }
  if (request.path == "/" || request.path == "/page") return ToPage();
  if (!request.path.starts_with(kRoot)) return Refusal(404, "there is no such page");
  const std::string_view name = std::string_view(request.path).substr(kRoot.size());
  if (name.starts_with(kData)) return AnswerData(request, name.substr(kData.size()));
  const std::string_view file = name.empty() ? "index.html" : name;
  for (const WebFile& known : WebFiles()) {
    if (known.name != file) continue;
    return {.type = std::string(TypeOf(file)), .body = std::string(known.content)};
  }
  return Refusal(404, "there is no such file");
}

HttpAnswer Page::Answer(const HttpRequest& request) {
  HttpAnswer answer = Choose(request);
  AddHeaders(answer);
  return answer;
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::set<std::string, std::less<>> OwnHosts(std::string_view address) {
  std::set<std::string, std::less<>> hosts = {ToLower(HostName()), HostOf(address)};
  hosts.erase("");
  return hosts;
}

}  // namespace resmgr
