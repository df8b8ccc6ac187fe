# SPDX-License-Identifier: Apache-2.0
# Of a page that cmark-gfm converted: gives headings the ids that GitHub gives them, leads links to .html, and appends a
# line for each section to the index of the search. Variables: page, title, index_file.

function plain(html) {
  gsub(/<[^>]*>/, "", html)
  gsub(/&lt;/, "<", html)
  gsub(/&gt;/, ">", html)
  gsub(/&quot;/, "\"", html)
  gsub(/&amp;/, "\\&", html)
  return html
}

function slug(html, text) {
  text = tolower(plain(html))
  gsub(/[^a-z0-9_ -]/, "", text)
  gsub(/ /, "-", text)
  if (text in used) text = text "-" used[text]++
  else used[text] = 1
  return text
}

function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  gsub(/[\t\r\n]+/, " ", text)
  gsub(/<\//, "<\\/", text)
  return "\"" text "\""
}

function end_section() {
  if (heading != "")
    printf "[%s,%s,%s,%s],\n", quoted(page anchor), quoted(plain(title)), quoted(heading), quoted(text_of_section) >>index_file
}

BEGIN { heading = title; anchor = "" }

{
  if (match($0, /^<h[1-6]>/)) {
    level = substr($0, 3, 1)
    inner = $0
    sub(/^<h[1-6]>/, "", inner)
    sub(/<\/h[1-6]>$/, "", inner)
    id = slug(inner)
    $0 = "<h" level " id=\"" id "\">" inner "</h" level ">"
    if (level > 1) end_section()
    if (level > 1) text_of_section = ""
    heading = plain(inner)
    anchor = level > 1 ? "#" id : ""
  } else {
    text_of_section = text_of_section " " plain($0)
  }
  line = ""
  while (match($0, /href="[^"]*"/)) {
    link = substr($0, RSTART, RLENGTH)
    if (link !~ /^href="[a-z]+:/) {
      # The first page is the index; other READMEs keep their name.
      if (page !~ /\//) sub(/"README\.md/, "\"index.html", link)
      else if (link ~ /^href="(\.\.\/)+README\.md/ && up(link) == depth(page)) sub(/README\.md/, "index.html", link)
      sub(/\.md(#|"$)/, ".html&", link)
      sub(/\.html\.md/, ".html", link)
      sub(/\/"$/, "/README.html\"", link)
    }
    line = line substr($0, 1, RSTART - 1) link
    $0 = substr($0, RSTART + RLENGTH)
  }
  print line $0
}

function up(link) { return gsub(/\.\.\//, "", link) }

function depth(path) { return gsub(/\//, "", path) }

END { end_section() }
