"""Seeds in text formats."""

_BODY = """<h1>Hives</h1><nav><ul><li><a href="/">Home</a></li></ul></nav>
<p>Of <b>fifteen <i>kilograms</i></b> &amp; more: <a href="http://127.0.0.1:9/x">look</a><br/>
Ångström é 🐝</p>
<ul><li>one<ul><li>two</li></ul></li><li><p>three</p></li></ul><ol start="3"><li>x</li></ol>
<table><caption>Weights</caption><thead><tr><th colspan="2">Hive</th></tr></thead>
<tbody><tr><td rowspan="2">A1</td><td>31</td></tr>
<tr><td><p>kg</p><ul><li>in</li></ul></td></tr></tbody></table>
<dl><dt>Drone</dt><dd>A male bee</dd></dl><pre><code class="language-python">x = 1</code></pre>
<figure><img src="file:///etc/hostname" alt="A hive"/><figcaption>Fig. 1</figcaption></figure>
<form><label for="a">Name</label><input id="a" type="text" value="Ada"/>
<select><option>b</option></select></form>
<details><summary>More</summary><p>Hidden</p></details><math><mi>x</mi></math>"""

HTML = f"<!DOCTYPE html><html lang='en'><head><title>Hives</title></head><body>{_BODY}</body></html>"

XHTML = (
    '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE html [<!ENTITY bee "Apis">]>'
    f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Hives</title></head><body>{_BODY}</body></html>'
)

MARKDOWN = """---
title: Hives
---

# Hives of *spring*

Fifteen **kilograms** of `stores`, see [the list](http://127.0.0.1:9/x "t") and ![a hive](file:///etc/hostname).

> A quote
> > in a quote, Ångström é

1. one
   - two
     1. three
2. [x] four

| Hive | kg |
|------|---:|
| A1   | 31 |

```python
x = {"a": [1, 2]}
```

<div><b>HTML</b> block</div>

Setext
------

Line\\
break ~~gone~~ $x^2$ <kbd>k</kbd> &amp; [^1]

[^1]: A note.
"""

CSV = 'hive;kg;"note"\nA1;31;"a ""quoted"" word"\nB2;24,5;"two\nlines"\n'

ADOC = """= Hives
:toc:

== Spring

Fifteen *kilograms* of _stores_. image::file:///etc/hostname[alt]

* one
** two
. three

.Weights
|===
|Hive |kg

|A1 |31
|===

[source,python]
----
x = 1
----

// a comment
include::/etc/hostname[]
"""

VTT = """WEBVTT - Hives

NOTE a note

STYLE
::cue { color: red }

1
00:00.000 --> 00:02.000 align:start
<v Ada>Bees and <i>trees</i>

01:00:02.000 --> 01:00:04.000
- second line
- third &amp; last
"""

TEX = r"""\documentclass{article}
\usepackage{amsmath}
\newcommand{\hive}[2]{Hive #1 weighs #2}
\title{Hives}\author{Ada}
\begin{document}\maketitle
\section{Spring}\label{s} Fifteen \textbf{kilograms \emph{of}} stores, \hive{A1}{31}. See \ref{s}~\cite{x}.
\input{/etc/hostname}\includegraphics{/etc/hostname}
\begin{itemize}\item one \begin{enumerate}\item two\end{enumerate}\end{itemize}
\begin{table}\caption{Weights}\begin{tabular}{l|r}Hive & kg \\ \hline A1 & 31\end{tabular}\end{table}
\begin{equation} x^2 + \frac{a}{b} = \sum_{i=0}^n i \end{equation}
\begin{verbatim}
x = 1
\end{verbatim}
% a comment
\end{document}
"""

EML = """From: Ada <ada@example.org>
To: =?utf-8?q?B=C3=A9a?= <bea@example.org>
Subject: =?utf-8?b?SGl2ZXMg8J+QnQ==?=
Date: Mon, 1 Apr 2024 10:00:00 +0200
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="outer"

--outer
Content-Type: multipart/alternative; boundary="inner"

--inner
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Fifteen kilograms =C3=A9

--inner
Content-Type: text/html; charset=utf-8

<html><body><h1>Hives</h1><p>Fifteen <b>kilograms</b></p><img src="cid:a"></body></html>

--inner--
--outer
Content-Type: image/png; name="a.png"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="../../a.png"

iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==

--outer--
"""

PATENT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE us-patent-grant SYSTEM "us-patent-grant-v45-2014-04-03.dtd" [ ]>
<us-patent-grant lang="EN"><us-bibliographic-data-grant>
<invention-title id="d2e43">Hive scale</invention-title></us-bibliographic-data-grant>
<abstract id="abstract"><p id="p-0001" num="0000">A scale for hives.</p></abstract>
<description id="description"><heading id="h-0001" level="1">BACKGROUND</heading>
<p id="p-0002" num="0001">Fifteen <b>kilograms</b> of stores.</p></description>
<claims id="claims"><claim id="CLM-00001" num="00001"><claim-text>1. A scale.</claim-text></claim></claims>
</us-patent-grant>
"""

MHTML = """From: <Saved by Blink>
Snapshot-Content-Location: http://127.0.0.1:9/hives
Subject: Hives
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="part"

--part
Content-Type: text/html
Content-Transfer-Encoding: quoted-printable
Content-Location: http://127.0.0.1:9/hives

<html><body><h1>Hives</h1><p>Fifteen kilograms =E2=82=AC</p><img src=3D"http://127.0.0.1:9/a.png"></body></html>

--part--
"""

BOXNOTE = (
    '{"doc": {"type": "doc", "content": [{"type": "heading", "attrs": {"level": 1}, "content": '
    '[{"type": "text", "text": "Hives"}]}, {"type": "paragraph", "content": '
    '[{"type": "text", "text": "Fifteen kilograms"}]}]}}'
)

JATS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.2//EN"
 "JATS-archivearticle1.dtd">
<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><article-meta><title-group>
<article-title>Hives in <italic>spring</italic></article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Lovelace</surname><given-names>Ada</given-names>
</name><xref ref-type="aff" rid="a1">1</xref></contrib></contrib-group><aff id="a1">Apiary</aff>
<abstract><p>Fifteen kilograms.</p></abstract></article-meta></front>
<body><sec><title>Methods</title><p>We weighed <bold>hives</bold>
<xref ref-type="bibr" rid="r1">[1]</xref>.</p>
<list list-type="bullet"><list-item><p>one</p></list-item></list>
<table-wrap><label>Table 1</label><caption><p>Weights</p></caption>
<table><thead><tr><th>Hive</th></tr></thead>
<tbody><tr><td>A1</td></tr></tbody></table></table-wrap>
<fig><label>Fig</label><caption><p>A hive</p></caption><graphic xlink:href="file:///etc/hostname"/></fig>
<disp-formula><tex-math>x^2</tex-math></disp-formula></sec></body>
<back><ref-list><ref id="r1"><mixed-citation>Bees, 1999.</mixed-citation></ref></ref-list></back></article>
"""
