// SPDX-License-Identifier: Apache-2.0
#include "test/page/browser.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "agent/cluster_access.h"

namespace resmgr::test {
namespace {

using Json = Browser::Json;
constexpr std::chrono::seconds kStart{60};
constexpr long kCallSeconds = 60;
// The key by which WebDriver names an element.
constexpr const char* kElement = "element-6066-11e4-a52e-4f735466cecf";

size_t Append(char* data, size_t size, size_t count, void* text) {
  static_cast<std::string*>(text)->append(data, size * count);
  return size * count;
}

// The body of the answer.
StatusOr<std::string> Send(const std::string& method, const std::string& url,
                           const std::string& body) {
  CURL* const curl = curl_easy_init();
  std::string answer;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, kCallSeconds);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_slist* const headers = curl_slist_append(nullptr, "Content-Type: application/json");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  if (method == "POST") curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  if (code != CURLE_OK) return Unavailable("{} {}: {}", method, url, curl_easy_strerror(code));
  return answer;
}

}  // namespace

StatusOr<std::unique_ptr<Browser>> Browser::Start() {
  std::unique_ptr<Browser> browser(new Browser);
  RESMGR_RETURN_IF_ERROR(browser->StartDriver());
  RESMGR_RETURN_IF_ERROR(browser->StartSession());
  return browser;
}

// Has Chromium end first: it is the driver's child, and would go on.
Browser::~Browser() {
  if (!session_.empty()) (void)Call("DELETE", session_, {});
  if (driver_ == nullptr) return;
  driver_->Signal(SIGTERM);
  (void)driver_->Wait(std::chrono::seconds(5));
}

Status Browser::StartDriver() {
  const std::string log = directory_.File("driver.log");
  RESMGR_ASSIGN_OR_RETURN(driver_, ChildProcess::Start({"chromedriver", "--port=0"}, log));
  constexpr std::string_view kBefore = "started successfully on port ";
  const Status started = WaitUntil("chromedriver", kStart, [&] {
    const std::string text = TextOf(log);
    const size_t at = text.find(kBefore);
    if (at == std::string::npos) return !driver_->Running();
    const char* const number = text.data() + at + kBefore.size();
    return std::from_chars(number, text.data() + text.size(), port_).ptr != number;
  });
  if (started.ok() && port_ != 0) return OkStatus();
  return Unavailable("chromedriver does not start: {}", LastLines(log));
}

Status Browser::StartSession() {
  const Json options = {
      {"args",
       {"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
        "--user-data-dir=" + directory_.File("profile")}}};
  const Json capabilities = {{"goog:chromeOptions", options},
                             {"goog:loggingPrefs", {{"browser", "ALL"}, {"performance", "ALL"}}}};
  RESMGR_ASSIGN_OR_RETURN(
      const Json session,
      Call("POST", "/session", {{"capabilities", {{"alwaysMatch", capabilities}}}}));
  session_ = "/session/" + session.at("sessionId").get<std::string>();
  return OkStatus();
}

StatusOr<Json> Browser::Call(const std::string& method, const std::string& path, const Json& body) {
  RESMGR_ASSIGN_OR_RETURN(
      const std::string answer,
      Send(method, fmt::format("http://127.0.0.1:{}{}", port_, path), body.dump()));
  const Json parsed = Json::parse(answer, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("value")) {
    return Internal("{} {}: {}", method, path, answer.substr(0, 500));
  }
  const Json& value = parsed["value"];
  if (value.is_object() && value.contains("error")) {
    return Internal("{} {}: {}", method, path, value.value("message", "?").substr(0, 1000));
  }
  return value;
}

StatusOr<Json> Browser::DevTools(const std::string& command, const Json& parameters) {
  return Call("POST", session_ + "/goog/cdp/execute", {{"cmd", command}, {"params", parameters}});
}

Status Browser::Open(const std::string& url) {
  return Call("POST", session_ + "/url", {{"url", url}}).status();
}

StatusOr<Json> Browser::Run(const std::string& body, const Json& arguments) {
  return Call("POST", session_ + "/execute/sync", {{"script", body}, {"args", arguments}});
}

Status Browser::Press(const std::vector<std::string>& keys) {
  Json actions = Json::array();
  for (const std::string& key : keys) {
    actions.push_back({{"type", "keyDown"}, {"value", key}});
    actions.push_back({{"type", "keyUp"}, {"value", key}});
  }
  const Json keyboard = {{"type", "key"}, {"id", "keyboard"}, {"actions", actions}};
  return Call("POST", session_ + "/actions", {{"actions", Json::array({keyboard})}}).status();
}

StatusOr<std::string> Browser::Find(const std::string& selector) {
  RESMGR_ASSIGN_OR_RETURN(
      const Json element,
      Call("POST", session_ + "/element", {{"using", "css selector"}, {"value", selector}}));
  return session_ + "/element/" + element.at(kElement).get<std::string>();
}

Status Browser::Click(const std::string& selector) {
  // The page may draw the element again after it was found: then the new one is meant.
  constexpr int kMostRedrawn = 3;
  Status clicked;
  for (int i = 0; i < kMostRedrawn; ++i) {
    RESMGR_ASSIGN_OR_RETURN(const std::string element, Find(selector));
    clicked = Call("POST", element + "/click", Json::object()).status();
    if (Message(clicked).find("stale element reference") == std::string_view::npos) break;
  }
  return clicked;
}

Status Browser::ChooseFiles(const std::string& selector, const std::vector<std::string>& files) {
  RESMGR_ASSIGN_OR_RETURN(const std::string element, Find(selector));
  return Call("POST", element + "/value", {{"text", fmt::format("{}", fmt::join(files, "\n"))}})
      .status();
}

Status Browser::Resize(int width, int height) {
  return DevTools(
             "Emulation.setDeviceMetricsOverride",
             {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}})
      .status();
}

Status Browser::PreferColours(const std::string& scheme) {
  const Json feature = {{"name", "prefers-color-scheme"}, {"value", scheme}};
  return DevTools("Emulation.setEmulatedMedia", {{"features", Json::array({feature})}}).status();
}

StatusOr<std::string> Browser::Screenshot() {
  RESMGR_ASSIGN_OR_RETURN(const Json image, Call("GET", session_ + "/screenshot", {}));
  const auto bytes = agent::DecodeBase64(image.get<std::string>());
  if (!bytes) return Internal("a screenshot that is no base64");
  return *bytes;
}

StatusOr<Json> Browser::Log(const std::string& type) {
  return Call("POST", session_ + "/se/log", {{"type", type}});
}

StatusOr<std::vector<std::string>> Browser::TakeConsole() {
  RESMGR_ASSIGN_OR_RETURN(const Json entries, Log("browser"));
  std::vector<std::string> lines;
  for (const Json& entry : entries)
    lines.push_back(entry.value("level", "") + " " + entry.value("message", ""));
  return lines;
}

StatusOr<std::vector<std::string>> Browser::TakeRequests() {
  RESMGR_ASSIGN_OR_RETURN(const Json entries, Log("performance"));
  std::vector<std::string> urls;
  for (const Json& entry : entries) {
    const Json message = Json::parse(entry.value("message", ""), nullptr, false);
    const Json event = message.value("message", Json::object());
    if (event.value("method", "") != "Network.requestWillBeSent") continue;
    urls.push_back(event.at("params").at("request").value("url", ""));
  }
  return urls;
}

}  // namespace resmgr::test
