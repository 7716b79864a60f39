/*
 * Offer, cookie, first key handshake and path join, between one client that has two networks and
 * one server that listens. The network loses, repeats and reorders: a packet is the fact that it
 * was sent, and whoever may receive it may do so at any time, several times or never.
 *
 * -DHOSTILE=BITS  addresses at which the attacker reads and drops: 1 and 2 are the client's two
 *                 networks, 4 is its own address. 4 is off path, 5 is on path of one network, 7 of
 *                 both. It sends from any address.
 * -DTODAY         the design before the commit "strangers and members"
 * -DCLAIM=...     the one claim of this run
 *
 * Nobody makes a cookie (the server's MAC), a Finished or a record without the keys. TLS 1.3's
 * handshake (RFC 8446 §4.4) is: ClientHello in clear, then a signed message of each end that names
 * that ClientHello. Tags are not guessed: the attacker knows those that it has seen.
 */
#ifndef HOSTILE
#define HOSTILE 7
#endif
#define AGREEMENT 1 /* who is up goes by the same parameters as the other end */
#define DOWNGRADE 2 /* and both go by all that both have */
#define COOKIE 3    /* no association at an address that its cookie was not sent to */
#define JOIN 4      /* no path without a cookie or a record of the client's */
#define ATTEMPT 5   /* if one network of the two is honest, the attempt is not ended */
#define WITNESS 6   /* it never comes up with both paths: violated, or the model is empty */
#ifndef CLAIM
#define CLAIM AGREEMENT
#endif

#define CTAG 1     /* the client */
#define ATAG 2     /* the attacker as a client */
#define FEATURES 1 /* what both ends have beside keys: other networks, redundancy, discarding */
#define MOST 2     /* INIT ACKs that the server sends */
#define SEES(r) (((HOSTILE) >> (r)) & 1)
/* Who reads one of the client's networks knows its tag, and may send to it in the server's name. */
#define KNOWS_TAG ((HOSTILE) & 3)

/* What the server put into a cookie, which is its tag as well (crates/sctp/src/cookie.rs). */
byte cookies = 0;
byte k_route[3], k_tag[3], k_feat[3], k_offer[3], k_ours[3];
bool k_seen[3];   /* the attacker has it */
bool k_echoed[9]; /* the client sent it back: cookie * 3 + route */

mtype = { NOTHING, AGREEING, PROVED, UP, OVER };
mtype server[3] = NOTHING; /* the server's associations, by tag */
byte paths[3];             /* of each, by bit of its route */

mtype = { WAIT, ECHOED, OPEN };
mtype client = WAIT;
bool told = false;         /* its INIT left */
byte heard[2];             /* the cookie of the answer over each route */
byte a_feat[2], a_offer[2];
byte taken = 0;            /* the route whose answer it goes by */
byte hello = 0;            /* the association whose ClientHello its Finished names; 0: forged */
bool answered = false;
bool asks_to_join = false;
bool refused = false;      /* the server refused what it heard, in clear */

/* What keys depend on, as each end has it (crates/secure/src/exchange.rs, Transcript::context). */
#ifdef TODAY
#define BOUND(ctag, cfeat, coffer, stag, sfeat, soffer) ((coffer) * 4 + (soffer))
#else
/* Both INIT chunks but for the cookie (crates/sctp/src/wire/binding.rs). */
#define BOUND(ctag, cfeat, coffer, stag, sfeat, soffer) \
	((((((ctag) * 2 + (cfeat)) * 4 + (coffer)) * 4 + (stag)) * 2 + (sfeat)) * 4 + (soffer))
#endif
#define OF_SERVER(n) BOUND(k_tag[n], k_feat[n], k_offer[n], n, k_ours[n], 1)
#define OF_CLIENT BOUND(CTAG, FEATURES, 1, heard[taken], a_feat[taken], a_offer[taken])

#define MAY_SAY(n) (n == heard[taken] || KNOWS_TAG)

/* INIT (endpoint/accept.rs handle_init, RFC 9260 §5.1 B): INIT ACK, and nothing is kept. */
inline init_comes(route, its_tag, its_feat, its_offer)
{
	if
	:: its_offer == 0 -> refused = refused || its_tag == CTAG /* ABORT in clear, cause 100 */
	:: else ->
		cookies++;
		k_route[cookies] = route; k_tag[cookies] = its_tag;
		k_feat[cookies] = its_feat; k_offer[cookies] = its_offer;
		/* send_init_ack: what is too long is left out, as far as the peer did not offer it. */
		if :: k_ours[cookies] = FEATURES :: k_ours[cookies] = its_feat fi;
		k_seen[cookies] = SEES(route)
	fi
}

/* COOKIE ECHO (accept.rs handle_cookie_echo, RFC 9260 §5.1 D). */
inline echo_comes(route, n)
{
	if
#ifndef TODAY
	:: k_route[n] != route /* answered by a Stale Cookie error (RFC 9260 §5.2.6) */
#endif
	:: else ->
#if CLAIM == COOKIE
		assert(k_route[n] == route);
#endif
		server[n] = AGREEING; /* COOKIE ACK and ClientHello leave. */
		paths[n] = 1 << route
	fi
}

inline close_client()
{
#if CLAIM == ATTEMPT
	assert(KNOWS_TAG == 3); /* Unless both networks are hostile. */
#endif
	client = OVER
}

/* INIT ACK (assoc/handshake.rs handle_init_ack, RFC 9260 §5.1 C). */
inline init_ack_comes(route, its_feat, its_offer, its_cookie)
{
	if
	:: its_offer == 0 && client == WAIT -> close_client() /* agree_on_keys */
	:: its_offer == 0 && client != WAIT                   /* a later answer is dropped */
	:: else ->
		heard[route] = its_cookie;
		a_feat[route] = its_feat; a_offer[route] = its_offer;
		k_echoed[its_cookie * 3 + route] = true;
		k_seen[its_cookie] = k_seen[its_cookie] || SEES(route);
		client = ECHOED
	fi
}

active proctype world()
{
	byte r, n, feat, offer;
	do
	/* ---- the client ---- */
	:: !told -> told = true /* INIT over both networks (opening.rs, open_over) */

	/* An INIT ACK of the server's own ... */
	:: atomic { (client == WAIT || client == ECHOED) && cookies > 0 -> select(n : 1 .. cookies);
		if
		:: k_tag[n] == CTAG && k_route[n] < 2 && heard[k_route[n]] == 0 -> init_ack_comes(k_route[n], k_ours[n], 1, n)
		:: else
		fi; n = 0 }
	/* ... or one of the attacker's: a cookie that it has, and anything else. */
	:: atomic { (client == WAIT || client == ECHOED) && cookies > 0 && KNOWS_TAG && told -> select(n : 1 .. cookies);
		if
		:: k_seen[n] && (heard[0] == 0 || heard[1] == 0) ->
			if :: heard[0] == 0 -> r = 0 :: heard[1] == 0 -> r = 1 fi;
			if :: feat = 0 :: feat = 1 fi;
			if :: offer = 0 :: offer = 1 :: offer = 2 fi;
			init_ack_comes(r, feat, offer, n)
		:: else
		fi; r = 0; n = 0; feat = 0; offer = 0 }

	/* COOKIE ACK over a route (handshake.rs handle_cookie_ack): its answer, or the first one. */
	:: atomic { client == ECHOED ->
		if :: r = 0 :: r = 1 fi;
		n = heard[r];
		if
		:: KNOWS_TAG || (n != 0 && server[n] != NOTHING && k_tag[n] == CTAG && (paths[n] & (1 << r))) ->
			if :: n != 0 -> taken = r :: else -> taken = 1 - r fi;
			client = OPEN
		:: else
		fi; r = 0; n = 0 }

	/* ABORT in clear before there are keys (RFC 9260 §9.1; handshake.rs, receive.rs). */
	:: atomic { (client == WAIT || client == ECHOED || client == OPEN) && told && (KNOWS_TAG || (client == WAIT && refused)) ->
		close_client() }

	/* ClientHello: the client of the association is TLS's server (secure/offer.rs, Roles). Of another
	   association it has TSNs that are out of the window (rx/tracker.rs), unless somebody sees to it. */
	:: atomic { client == OPEN && !answered && cookies > 0 -> select(n : 1 .. cookies);
		if
		:: server[n] == NOTHING || k_tag[n] != CTAG || !MAY_SAY(n)
#ifndef TODAY
		/* ALPN (RFC 7301) carries what is bound (secure/tls.rs): Refused::Altered at once. */
		:: server[n] != NOTHING && k_tag[n] == CTAG && MAY_SAY(n) && OF_SERVER(n) != OF_CLIENT -> close_client()
#endif
		:: else -> hello = n; answered = true
		fi; n = 0 }
	/* A forged one, whose sender has no key to go on with. */
	:: atomic { client == OPEN && !answered && KNOWS_TAG ->
		if :: answered = true :: close_client() fi }

	/* The server's Finished: the peer is proved, and records are sealed (secure/guard.rs advance). */
	:: atomic { client == OPEN && answered && hello > 0 && server[hello] == PROVED ->
		client = UP;
#if CLAIM == AGREEMENT
		assert((FEATURES & a_feat[taken]) == (k_feat[hello] & k_ours[hello]))
#endif
		}

	/* ASCONF in a record (RFC 5061 §4.1.1): the other network joins. */
	:: client == UP && !asks_to_join -> asks_to_join = true

	/* ---- the server ---- */
	:: atomic { cookies < MOST && told -> /* the client's INIT, or the same changed */
		if :: r = 0 :: r = 1 fi;
		feat = FEATURES; offer = 1;
		if
		:: KNOWS_TAG -> if :: feat = 0 :: feat = 1 fi; if :: offer = 0 :: offer = 1 :: offer = 2 fi
		:: else
		fi;
		init_comes(r, CTAG, feat, offer);
		r = 0; feat = 0; offer = 0 }
	:: atomic { cookies < MOST -> /* a stranger's, in its own or in another's name */
		if :: r = 0 :: r = 1 :: r = 2 fi;
		init_comes(r, ATAG, FEATURES, 1);
		r = 0 }

	:: atomic { cookies > 0 -> select(n : 1 .. cookies);
		if :: r = 0 :: r = 1 :: r = 2 fi;
		if
		:: server[n] == NOTHING && (k_seen[n] || k_echoed[n * 3 + r]) -> echo_comes(r, n)
		:: else /* A duplicate (RFC 9260 §5.2.4 D) lets no path join: assoc/restart.rs. */
		fi; r = 0; n = 0 }

	/* The client's signed answer, to the ClientHello that it names. */
	:: answered && hello > 0 && server[hello] == AGREEING -> server[hello] = PROVED

	/* Its first record, which opens if both ends derived the same keys. */
	:: atomic { client == UP && server[hello] == PROVED && OF_SERVER(hello) == OF_CLIENT ->
		server[hello] = UP;
#if CLAIM == DOWNGRADE
		assert((a_feat[taken] & k_feat[hello] & k_ours[hello]) == FEATURES)
#elif CLAIM == JOIN
		assert(paths[hello] == 1 << k_route[hello])
#endif
		}

	/* ASCONF, in the client's record or in the same sent on from elsewhere. In clear it is dropped
	   (assoc/guarded.rs), and before there are keys as well (protect.rs may_be_clear). */
	:: atomic { hello > 0 && server[hello] == UP && asks_to_join ->
		if :: r = 0 :: r = 1 :: KNOWS_TAG -> r = 2 fi;
		paths[hello] = paths[hello] | (1 << r);
#if CLAIM == WITNESS
		assert(paths[hello] != 3);
#elif CLAIM == JOIN
		assert(r < 2 || KNOWS_TAG);
#endif
		r = 0 }
	:: client == OVER && CLAIM != COOKIE -> break
	od
}
