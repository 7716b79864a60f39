/*
 * Places at a server: strangers, who echoed a cookie and have proved no key, and members.
 *
 * -DTODAY     the design before the commit "strangers and members": one pool, endpoint/accept.rs turn_out_idlest
 * -DCLAIM=... the one claim of this run
 *
 * Hosts 1 and 2 are honest, and both of their associations are members from the beginning; host 1
 * has two. The attacker has any number of hosts, from which it answers and proves nothing.
 */
#define MEMBERS 1 /* no member loses its place because a stranger comes */
#define WITNESS 2 /* strangers never fill their places (violated) */
#ifndef CLAIM
#define CLAIM MEMBERS
#endif
#define MOST 5
#define HOSTS 6   /* 3 is the newcomer with a key, 4 to 6 are the attacker's */

#define NOBODY 0
#define STRANGER 1
#define MEMBER 2
byte kind[MOST + 1], host[MOST + 1];
byte age[MOST + 1];   /* of a stranger: 0 young, 1 stayed for its time (core Strangers::STAY) */
byte has[HOSTS + 1];  /* places of a host that count against each other */
byte strangers;
#define POOL 2        /* core::Strangers::PLACES */

inline leaves(at)
{
	if :: kind[at] == STRANGER -> strangers-- :: else fi;
	has[host[at]]--;
	kind[at] = NOBODY; host[at] = 0; age[at] = 0
}

/* The first free place, or 0. */
inline look()
{
	free = 1;
	do
	:: free <= MOST && kind[free] != NOBODY -> free++
	:: else -> break
	od;
	if :: free > MOST -> free = 0 :: else fi
}

active proctype world()
{
	byte who, free, at, most; bool heard;
	atomic {
		kind[1] = MEMBER; host[1] = 1; has[1] = 2; kind[2] = MEMBER; host[2] = 1;
		kind[3] = MEMBER; host[3] = 2; has[2] = 1 }
	do
	/* A COOKIE ECHO from any host but those of members. */
	:: atomic { select(who : 3 .. HOSTS);
		look();
#ifdef TODAY
		if
		:: free != 0
		:: else -> /* of a host with most associations one goes */
			most = 0; at = 1;
			do
			:: at <= MOST -> if :: has[host[at]] > most -> most = has[host[at]] :: else fi; at++
			:: else -> break
			od;
			select(at : 1 .. MOST);
			if :: heard = true :: heard = false fi; /* it was heard of within 250 ms */
			if
			:: has[host[at]] == most && (most > has[who] + 1 || !heard) ->
#if CLAIM == MEMBERS
				assert(kind[at] != MEMBER);
#endif
				leaves(at); free = at
			:: else
			fi; heard = false
		fi;
		if
		:: free != 0 -> kind[free] = STRANGER; host[free] = who; has[who]++; strangers++
		:: else
		fi;
#else
		/* core/src/strangers.rs ask: only strangers count, and only a stranger goes. */
		if
		:: strangers < POOL
		:: else ->
			most = 0; at = 1;
			do
			:: at <= MOST -> if :: kind[at] == STRANGER && has[host[at]] > most -> most = has[host[at]] :: else fi; at++
			:: else -> break
			od;
			select(at : 1 .. MOST);
			if
			:: kind[at] == STRANGER && has[host[at]] == most && (most > has[who] + 1 || age[at] == 1) ->
#if CLAIM == MEMBERS
				assert(kind[at] != MEMBER);
#endif
				leaves(at)
			:: else
			fi
		fi;
		look();
		if
		:: strangers < POOL && free != 0 -> kind[free] = STRANGER; host[free] = who; has[who]++; strangers++
		:: else
		fi;
#endif
#if CLAIM == WITNESS
		assert(strangers < POOL);
#endif
		who = 0; free = 0; at = 0; most = 0 }

	/* A stranger stayed for its time; one of a host with a key proves it meanwhile, or is gone. */
	:: atomic { select(at : 1 .. MOST);
		if
		:: kind[at] == STRANGER && host[at] == 3 ->
			leaves(at) /* among members, which have places of their own: endpoint/places.rs take_in */
		:: kind[at] == STRANGER && host[at] != 3 -> age[at] = 1
		:: else
		fi; at = 0 }
	od
}
