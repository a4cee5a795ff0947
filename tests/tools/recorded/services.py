"""Recorded bodies about services, security, news, code, models and games."""

from datetime import date

from tests.tools.recorded.rows import Read, Refused
from tools.sources import (
    aider,
    aws,
    azure,
    cisa,
    feodo,
    github,
    google_cloud,
    hackernews,
    hackernews_algolia,
    huggingface,
    internetdb,
    news_feeds,
    openphish,
    reddit,
    slack,
    statuspage,
    steam,
    steamspy,
    swebench,
    threatfox,
    urlhaus,
)
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceLimited, SourceRefused

CALM = {"indicator": "none", "description": "All Systems Operational"}
WEEK = github.RepoQuery(github.NEW, date(2026, 7, 1))

ROWS = (
    *(
        Read(
            f"aws-health/currentevents-2026-09-trimmed{form}.json",
            aws.AWS_EVENTS,
            3,
            {"0.level": 0, "0.summary": "[RESOLVED] Increased API Error Rates", "1.level": 3, "1.region": "UAE"},
        )
        for form in ("", "-DERIVED-utf16be-bom")
    ),
    Read(
        "azure-status/feed-empty-2026-07.xml", azure.AZURE_STATUS, 0, {"built_at": "2026-07-31T00:12:00Z"}, of="items"
    ),
    Read("google-cloud-status/incidents-2026-07.json", google_cloud.GOOGLE_CLOUD_INCIDENTS, 0, {}),
    Read(
        "slack-status/current-active-2023-09.json",
        slack.SLACK_STATUS,
        1,
        {"status": "active", "incidents.0.title": "Can't dismiss Now you've got Later", "incidents.0.kind": "incident"},
        of="incidents",
    ),
    Read("slack-status/current-ok-2021-06.json", slack.SLACK_STATUS, 0, {"status": "ok"}, of="incidents"),
    *(
        Read(f"statuspage/{name}.json", statuspage.STATUSPAGES[slug], None, CALM)
        for name, slug in (
            ("claude-status-2026-08", "Anthropic"),
            ("claude-summary-2026-09", "Anthropic"),
            ("github-status-ok-2023-09", "GitHub"),
            ("github-summary-excerpt-2026-08", "GitHub"),
            ("openai-summary-incidentio-2026-07", "OpenAI"),
        )
    ),
    Refused(
        "statuspage/github-incidents-2026-07.json", statuspage.STATUSPAGES["GitHub"], SourceChanged, None, "status"
    ),
    *(
        Read(f"cisa-kev/kev-{name}-trimmed.json", cisa.KNOWN_EXPLOITED, 150, facts, of="entries", cut=True)
        for name, facts in (
            (
                "2023-04",
                {"entries.0.cve": "CVE-2021-27104", "entries.0.vendor": "Accellion", "entries.0.ransomware": None},
            ),
            (
                "2025-08",
                {
                    "entries.0.cve": "CVE-2025-48384",
                    "entries.0.product": "Git",
                    "entries.0.added": "2025-08-25",
                    "entries.0.due": "2025-09-15",
                },
            ),
        )
    ),
    Read(
        "feodo/ipblocklist-2026-07.json",
        feodo.COMMAND_SERVERS,
        5,
        {
            "0.port": 8080,
            "0.malware": "Emotet",
            "0.country": "US",
            "0.first_seen_at": "2022-06-04T21:24:53Z",
        },
    ),
    Read("openphish/feed-2026-08.txt", openphish.PHISHING_URLS, 300, {"0": "https://api.msuto.com/"}),
    Read(
        "shodan-internetdb/error-404-no-information.json",
        internetdb.ASKED_HOST,
        0,
        {"indexed": False},
        "192.0.2.1",
        of="ports",
    ),
    Read(
        "shodan-internetdb/found-1.1.1.1-2026.json",
        internetdb.ASKED_HOST,
        7,
        {"ip": "1.1.1.1", "ports.6": 8880, "hostnames.0": "one.one.one.one", "cves#": 0},
        "1.1.1.1",
        of="ports",
    ),
    Read(
        "threatfox/api-get_iocs-2022-08.json",
        threatfox.INDICATORS,
        2,
        {
            "0.id": 841537,
            "0.value": "wizzy.hopto.org",
            "0.malware": "AsyncRAT",
            "0.first_seen_at": "2022-08-05T19:43:08Z",
        },
        cut=True,
    ),
    Read(
        "threatfox/export-recent-2026-07-trimmed.json",
        threatfox.INDICATORS,
        60,
        {"0.id": 1856791, "0.malware": "Vidar", "0.first_seen_at": "2026-07-24T13:50:06Z"},
    ),
    Refused("urlhaus/error-401-unauthorized.json", urlhaus.MALWARE_URLS, SourceRefused),
    Read(
        "urlhaus/urls-recent-2021-10.json",
        urlhaus.MALWARE_URLS,
        2,
        {"0.threat": "malware_download", "0.status": "online", "0.added_at": "2021-10-05T13:57:05Z"},
        cut=True,
    ),
    Refused(
        "github/error-403-rate-limit.json",
        github.REPOSITORIES,
        SourceLimited,
        WEEK,
    ),
    Read(
        "github/search-repositories-5.json",
        github.REPOSITORIES,
        5,
        {"repos.0.id": 145553672, "repos.0.full_name": "fighting41love/funNLP"},
        WEEK,
        of="repos",
    ),
    Read(
        "hn/algolia-search-30.json",
        hackernews_algolia.FRONT_PAGE,
        30,
        {"0.id": 49148159, "0.points": 37, "0.comments": 32, "0.author": "Lambda11"},
    ),
    Read("hn/firebase-item-ask.json", hackernews.ITEM, None, {"id": 121003, "points": 25, "url": None}, 121003),
    Read(
        "hn/firebase-item-story.json",
        hackernews.ITEM,
        None,
        {"points": 111, "comments": 71, "author": "dhouston", "created_at": "2007-04-04T19:16:40Z"},
        8863,
    ),
    Read("hn/firebase-item-job.json", hackernews.ITEM, None, {"": None}, 192327),
    Read(
        "huggingface/models-trending.json",
        huggingface.MODELS_LIKED_7D,
        15,
        {"models.0.id": "moonshotai/Kimi-K3", "models.0.likes": 9624, "models.0.downloads": 837202},
        of="models",
    ),
    Refused("steam/GetMostPlayedGames-3.json", steam.PLAYERS, SourceEmpty, None, "3 ranks"),
    *(
        Read(f"steamspy/{name}.json", steamspy.TOP100, 100, {"0.app_id": 730, "0.peak": peak})
        for name, peak in (("all-first100", 1013936), ("top100in2weeks", 923116))
    ),
    Read(
        "harnesses/aider-polyglot_leaderboard.yml",
        aider.POLYGLOT,
        69,
        {"0.model": "Gemini 2.0 Pro exp-02-05", "0.solved_percent": 35.6, "0.date": "2025-02-25"},
    ),
    Read(
        "harnesses/swebench-leaderboards-2025-11.json",
        swebench.LEADERBOARDS,
        145,
        {"bash_only#": 22, "verified.0.name": "TRAE + Doubao-Seed-Code", "verified.0.resolved_percent": 78.8},
        of="verified",
    ),
    Refused("harnesses/swebench-info_for_leaderboard.json", swebench.LEADERBOARDS, SourceChanged, None, "leaderboards"),
    Read(
        "news-rss/bbc-front-page.xml",
        news_feeds.BBC_BUSINESS,
        27,
        {"0.title": "Relish and dread as Starmer 'shambles' hangs over Scotland and Wales elections"}
        | {"0.at": "2026-04-25T12:07:54Z"},
        wrapped="the feed of the front page, from the publisher whose business feed we ask",
    ),
    Read(
        "federal-reserve-rss/press_all-excerpt-2026-07.xml",
        news_feeds.FEDERAL_RESERVE,
        1,
        {"0.title": "Agencies issue joint statement on sensitive information", "0.at": "2026-07-16T18:00:00Z"},
        cut=True,
    ),
    Read(
        "reddit/listing.rss.xml",
        reddit.HOT[0],
        25,
        {"0.title": "Rigid frame with flat bars. My kinda bike! RIP Alex Pretti", "0.at": "2026-01-25T03:07:14Z"},
        wrapped="another board in the same form",
    ),
    Refused("reddit/error-403-network-policy.html", reddit.HOT[0], SourceChanged, None, "HTML"),
)
